"""What a real mailbox also holds: ignored, unknown, broken and refused messages."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from msgexchange.demo import airport
from msgexchange.demo.departures import Departure
from msgexchange.demo.drafts import Draft, dead, operation, skipped
from msgexchange.demo.sis import cdata, element, leaf
from msgexchange.ids import Flid
from msgexchange.lifecycle.states import ErrorClass

UNKNOWN_KIND = ("WTHR", "OBS")
"""One kind for all of them: the first retries and dies, the others get one attempt (spec 3.3)."""

_NOTICE_FLIGHTS = 4


def irregular(departures: Sequence[Departure]) -> Iterator[Draft]:
    """Drafts of every sort, spread over ``departures`` (in schedule order, all of them flown
    according to plan: none deleted, none unknown to the plan).
    """
    yield from _ignored(departures)
    yield from _unknown(departures)
    yield from _broken(departures)
    yield from _refused(departures)
    for share in (0.25, 0.5, 0.75):
        yield _notice_to_several(departures, share)


def _pick(departures: Sequence[Departure], share: float) -> tuple[Departure, datetime]:
    """The flight that far through the day, and a time at which it is on everybody's mind."""
    departure = departures[int(share * (len(departures) - 1))]
    return departure, departure.scheduled - timedelta(minutes=31)


def _ignored(departures: Sequence[Departure]) -> Iterator[Draft]:
    for departure in departures:
        if airport.one_in(departure, "LDM", 50):
            load = leaf("FLNO", departure.flight) + leaf("PAX", "112/4")
            at = departure.scheduled + timedelta(minutes=3)
            yield _ignored_message("LDM", at, load)
    for share in (0.2, 0.45, 0.7, 0.95):
        departure, at = _pick(departures, share)
        yield _ignored_message("RSTA", at, leaf("STND", airport.stand(departure)))
        registration = leaf("ACRG", departure.tail or "")
        yield _ignored_message("REGN", at + timedelta(seconds=5), registration)


def _ignored_message(type_: str, at: datetime, content: str) -> Draft:
    draft = Draft(at=at, type_=type_, styp="", body=element(type_, content))
    return skipped(draft, "ignored")


def _unknown(departures: Sequence[Departure]) -> Iterator[Draft]:
    """Three messages of a kind nobody knows, five about flights nobody knows."""
    type_, styp = UNKNOWN_KIND
    for share, wind in ((0.3, "24012KT"), (0.5, "25015G25KT"), (0.7, "26010KT")):
        _, at = _pick(departures, share)
        body = element(type_, leaf("WIND", wind))
        draft = Draft(at=at + timedelta(seconds=11), type_=type_, styp=styp, body=body)
        yield dead(draft, ErrorClass.EXHAUSTED)
    for share in (0.15, 0.35, 0.55, 0.65, 0.85):
        departure, at = _pick(departures, share)
        unheard_of = Flid(f"X{departure.flid}")
        yield skipped(operation(unheard_of, at, "STAT", leaf("STAT", "BRD")), "no-match")


def _broken(departures: Sequence[Departure]) -> Iterator[Draft]:
    for share, spoil in (
        (0.1, _truncated),
        (0.4, _with_doctype),
        (0.6, _without_seqn),
        (0.7, _with_control_character),
        (0.8, _truncated),
        (0.9, _with_doctype),
    ):
        departure, at = _pick(departures, share)
        remark = leaf("RMRK", "请提前到达登机口 / be early & ready")
        draft = operation(departure.flid, at + timedelta(seconds=23), "RMRK", remark)
        yield replace(dead(draft, ErrorClass.MALFORMED), spoil=spoil)


def _refused(departures: Sequence[Departure]) -> Iterator[Draft]:
    """Readable, but against the contract: a body without its element, a flight named twice."""
    departure, at = _pick(departures, 0.33)
    without = operation(departure.flid, at, "GTDT", element("CKDT", leaf("CNTR", "J07"), CKNO="1"))
    yield dead(without, ErrorClass.PROTOCOL)
    departure, at = _pick(departures, 0.66)
    block = operation(departure.flid, at, "STAT", leaf("STAT", "BRD"))
    yield dead(replace(block, body=block.body * 2), ErrorClass.PROTOCOL)


def _notice_to_several(departures: Sequence[Departure], share: float) -> Draft:
    """One message with a block for each of several flights (spec 1.2)."""
    first = int(share * (len(departures) - 1))
    told = departures[first : first + _NOTICE_FLIGHTS]
    at = told[0].scheduled - timedelta(minutes=90)
    blocks = [
        operation(departure.flid, at, "RMRK", cdata("RMRK", "安检排队较长 / long queues <20 min>"))
        for departure in told
    ]
    return replace(blocks[0], body="".join(block.body for block in blocks), flights=len(told))


def _truncated(text: str) -> str:
    return text[: len(text) * 2 // 3]


def _with_doctype(text: str) -> str:
    return text.replace("\n", '\n<!DOCTYPE MSG [<!ENTITY site "NYC">]>\n', 1)


def _without_seqn(text: str) -> str:
    start, rest = text.split("<SEQN>", 1)
    return f"{start}<SEQN>{rest[rest.index('</SEQN>') :]}"


def _with_control_character(text: str) -> str:
    return text.replace(" / ", " \x01 ", 1)
