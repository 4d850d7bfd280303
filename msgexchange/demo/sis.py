"""SIS message text as the airport's database writes it (spec 1.1)."""

from datetime import datetime
from xml.sax.saxutils import escape, quoteattr

SENDER = "AODB"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]


def leaf(name: str, text: str) -> str:
    """An element that holds escaped text."""
    return f"<{name}>{escape(text)}</{name}>"


def cdata(name: str, text: str) -> str:
    """An element whose text stands in CDATA; the text must not hold its end mark."""
    return f"<{name}><![CDATA[{text}]]></{name}>"


def element(name: str, *children: str, **attributes: str) -> str:
    """An element around ``children`` that are XML already; empty without any."""
    start = name + "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return f"<{start}>{''.join(children)}</{name}>" if children else f"<{start}/>"


def item_time(at: datetime) -> str:
    """``DDMMMyyHHmm``, English month in any locale."""
    return f"{at.day:02d}{_MONTHS[at.month - 1]}{at:%y%H%M}"


def stamp(at: datetime) -> str:
    """``yyyyMMddHHmmss``, the form of DTTM."""
    return f"{at:%Y%m%d%H%M%S}"


def message(*, type_: str, styp: str, seqn: int, sent_at: datetime, body: str) -> str:
    """A whole message; SEQN is six digits."""
    meta = element(
        "META",
        leaf("SNDR", SENDER),
        leaf("SEQN", f"{seqn:06d}"),
        leaf("DTTM", stamp(sent_at)),
        leaf("TYPE", type_),
        leaf("STYP", styp),
    )
    return f"{_DECLARATION}\n{element('MSG', meta, body)}"
