"""The bytes of an HTTP body as text, or why they are none (spec 1.1, 1.5)."""

import codecs
import re
from dataclasses import dataclass

from msgexchange.codec.refusal import shown

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
_BEGINNINGS = (
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s;"]*)', re.IGNORECASE)
_DECLARATION = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([^"'>]{0,200})["']""")
_DECLARATION_BYTES_MAX = 1_024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,39}")

_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "utf-8-sig": "utf-8"}
# A list of our own: Python also knows codecs that are no charsets (unicode_escape, punycode).
_CHARSETS = frozenset(
    {
        "ascii",
        "big5",
        "big5hkscs",
        "euc_jp",
        "euc_kr",
        "gb18030",
        "hz",
        "koi8-r",
        "shift_jis",
        "utf-8",
    }
)
_CHARSET_FAMILIES = ("iso8859-", "cp125")
_WIDE = ("utf-16", "utf-32")


@dataclass(frozen=True, slots=True)
class Undecodable:
    """There is no sound text in these bytes; nothing may be stored."""

    reason: str


def decode_octets(body: bytes, content_type: str | None) -> str | Undecodable:
    """The text: by byte order mark, else the media type's charset, else the XML declaration,
    else UTF-8. GB2312 and GBK are read as GB18030, their superset.
    """
    for mark, charset in _MARKS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], charset, "the byte order mark")
    if content_type and (match := _CHARSET.search(content_type)):
        return _named(body, match[1], "the media type's charset")
    if declared := _DECLARATION.match(body[:_DECLARATION_BYTES_MAX]):
        return _named(body, declared[1].decode("latin-1"), "the XML declaration")
    # A declaration in wide characters shows by its first bytes alone.
    return _decoded(body, _wide_charset(body) or "utf-8", "the default")


def _named(body: bytes, name: str, source: str) -> str | Undecodable:
    charset = _charset(name)
    if charset is None:
        return Undecodable(
            f"{source} names {shown(name)}, which is not a charset this system reads; "
            "send UTF-8 or GB18030 and say so"
        )
    if charset.startswith(_WIDE):
        wide = _wide_charset(body)
        if wide is None or not wide.startswith(charset):
            return Undecodable(
                f"{source} says {charset}, but the body does not begin so; "
                "send UTF-8, or begin with a byte order mark"
            )
        charset = wide
    return _decoded(body, charset, source)


def _charset(name: str) -> str | None:
    if not _NAME.fullmatch(name):
        return None
    try:
        known = codecs.lookup(name).name
    except LookupError:
        return None
    known = _SUPERSETS.get(known, known)
    if known in _CHARSETS or known.startswith(_CHARSET_FAMILIES + _WIDE):
        return known
    return None


def _wide_charset(body: bytes) -> str | None:
    return next((charset for start, charset in _BEGINNINGS if body.startswith(start)), None)


def _decoded(body: bytes, charset: str, source: str) -> str | Undecodable:
    try:
        return body.decode(charset)
    except UnicodeDecodeError as exc:
        found = body[exc.start : exc.start + 4].hex(" ")
        return Undecodable(
            f"the bytes are not {charset}, which {source} asks for: {exc.reason} at byte "
            f"{exc.start} ({found}); send the charset that is declared, or declare the one sent"
        )
