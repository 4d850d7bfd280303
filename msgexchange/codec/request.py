"""The text of a request to the AODB, by the catalogue's names (spec 5.1)."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import assert_never
from xml.sax.saxutils import escape

from msgexchange.codec.catalogue import Envelope
from msgexchange.lifecycle.request import PlanWanted, ReferenceWanted, Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMeta:
    """META of an outbound message; ``sent_at`` is airport-local."""

    sndr: str
    seqn: str
    sent_at: datetime


def encode_request(wanted: Wanted, meta: RequestMeta, envelope: Envelope) -> str:
    """One message; the same values are always the same text."""
    match wanted:
        case PlanWanted(first_day, last_day):
            type_ = envelope.plan_request
            body = [(envelope.first_day, _day(first_day)), (envelope.last_day, _day(last_day))]
        case ReferenceWanted(reference_type):
            type_ = envelope.reference_request
            body = [(envelope.reference_type, reference_type)]
        case _:
            assert_never(wanted)
    head = [
        ("SNDR", meta.sndr),
        ("SEQN", meta.seqn),
        ("DTTM", f"{meta.sent_at:%Y%m%d%H%M%S}"),
        ("TYPE", type_),
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f"<MSG><META>{_elements(head)}</META><{type_}>{_elements(body)}</{type_}></MSG>"
    )


def _elements(values: list[tuple[str, str]]) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in values)


def _day(day: date) -> str:
    return f"{day:%Y%m%d}"
