"""What is said of one flight in the course of its day, in time order."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgexchange.demo import airport
from msgexchange.demo.airport import one_in, sway
from msgexchange.demo.delay import estimates, late
from msgexchange.demo.departures import Departure
from msgexchange.demo.drafts import Draft, deletion, operation, skipped
from msgexchange.demo.plan import route
from msgexchange.demo.sis import cdata, element, item_time, leaf

EARLIEST_BEFORE = timedelta(minutes=270)
"""Nothing is said of a flight earlier than this before its schedule."""


def _minutes(count: int) -> timedelta:
    return timedelta(minutes=count)


def flight_day(departure: Departure) -> Sequence[Draft]:
    """Every operation of the flight; a cancelled one is prepared until it is cancelled."""
    if departure.left is None:
        cancelled_at = _cancelled_at(departure)
        before = [draft for draft in _prepared(departure) if draft.at < cancelled_at]
        drafts = [*before, *_cancelled(departure, cancelled_at)]
    else:
        drafts = [
            *_prepared(departure),
            *estimates(departure, departure.left),
            *late(departure, departure.left),
            *_boarded(departure, departure.left),
            *_gone(departure, departure.left),
        ]
    return sorted(drafts, key=lambda draft: draft.at)


def _prepared(departure: Departure) -> Iterator[Draft]:
    """Registration, stand, check-in, gate, chute: hours ahead, by the schedule."""
    flid, scheduled = departure.flid, departure.scheduled

    def before(minutes: int, purpose: str) -> datetime:
        return scheduled - _minutes(minutes) + sway(departure, purpose, up_to_min=20)

    if departure.tail is not None:
        yield operation(flid, before(270, "ACRG"), "ACRG", leaf("ACRG", departure.tail))
    yield operation(flid, before(240, "STDT"), "STDT", _stand(departure))
    yield operation(flid, before(200, "CKDT"), "CKDT", _check_in(departure))
    yield operation(flid, before(170, "GTDT"), "GTDT", _gate(scheduled, airport.gate(departure)))
    if one_in(departure, "CHDT", 4):
        yield operation(flid, before(140, "CHDT"), "CHDT", _chute(departure))
    if one_in(departure, "ACTP", 25):
        changed = airport.aircraft_type(departure, "other type")
        yield operation(flid, before(220, "ACTP"), "ACTP", leaf("ACTP", changed))
    if one_in(departure, "TERM", 100):
        yield operation(flid, before(215, "TERM"), "TERM", leaf("TERM", f"{departure.origin}-D"))
    if one_in(departure, "STND", 30):
        towed_to = airport.stand(departure, "towed")
        yield operation(flid, before(90, "STND"), "STND", leaf("STND", towed_to))
    yield from _services(departure, before(110, "services"))


def _stand(departure: Departure) -> str:
    scheduled = departure.scheduled
    return element(
        "STDT",
        leaf("STND", airport.stand(departure)),
        leaf("SSTM", item_time(scheduled - _minutes(65))),
        leaf("SETM", item_time(scheduled)),
        STNO="1",
    )


def _check_in(departure: Departure) -> str:
    return "".join(
        element(
            "CKDT",
            leaf("CNTR", counter),
            leaf("COTM", item_time(departure.scheduled - _minutes(150))),
            leaf("CCTM", item_time(departure.scheduled - _minutes(40))),
            leaf("CCLS", "YF"[place]),
            CKNO=str(place + 1),
        )
        for place, counter in enumerate(airport.counters(departure))
    )


def _gate(leaves: datetime, *gates: str) -> str:
    return "".join(
        element(
            "GTDT",
            leaf("GATE", gate),
            leaf("GOTM", item_time(leaves - _minutes(45))),
            leaf("GCTM", item_time(leaves - _minutes(10))),
            GTNO=str(place),
        )
        for place, gate in enumerate(gates, start=1)
    )


def _chute(departure: Departure) -> str:
    opens, closes = departure.scheduled - _minutes(130), departure.scheduled - _minutes(30)
    return element(
        "CHDT",
        leaf("CHUT", airport.chute(departure)),
        leaf("HOTM", item_time(opens)),
        leaf("HCTM", item_time(closes)),
        CHNO="1",
    )


def _services(departure: Departure, at: datetime) -> Iterator[Draft]:
    flid = departure.flid
    if one_in(departure, "SRVT", 16):
        wheelchairs = str(airport.fingerprint(departure, "wheelchairs") % 4 + 1)
        text = element("SRVT", leaf("WCHR", wheelchairs), leaf("NOTE", "ramp & lift"))
        yield operation(flid, at, "SRVT", text)
    if one_in(departure, "MAFL", 14):
        bags = airport.fingerprint(departure, "bags") % 30 + 1
        text = element("MAFL", leaf("BAGS", str(bags)), leaf("WGHT", str(bags * 12)))
        yield operation(flid, at, "MAFL", text)
    if one_in(departure, "VIPF", 60):
        text = element("VIPF", leaf("PAX", "2"), cdata("NOTE", "贵宾室 <2>, Lounge & Bar"))
        yield operation(flid, at, "VIPF", text)


def _boarded(departure: Departure, left: datetime) -> Iterator[Draft]:
    """Boarding opens, last call, boarding closes; a late flight may have changed gate before."""
    flid = departure.flid
    if departure.delay_min >= 30 and one_in(departure, "gate change", 4):
        gates = (airport.gate(departure, "new gate"), airport.gate(departure))
        at = left - _minutes(70)
        yield operation(flid, at, "GTDT", _gate(left, *gates))
        yield operation(
            flid, at + _minutes(1), "RMRK", leaf("RMRK", f"登机口变更 → {gates[0]} / gate change")
        )
    for styp, minutes, kept_one_in in (("BRDO", 38, 2), ("LSTC", 20, 4), ("BRDC", 12, 2)):
        if one_in(departure, styp, kept_one_in):
            at = left - _minutes(minutes) + sway(departure, styp, up_to_min=3)
            yield operation(flid, at, styp, leaf(styp, item_time(at)))


def _gone(departure: Departure, left: datetime) -> Iterator[Draft]:
    """Bridge away, chocks off, the actual time, and what became of the flight on its way."""
    flid = departure.flid
    if departure.carrier not in airport.REGIONAL and one_in(departure, "BRDT", 3):
        yield operation(flid, left - _minutes(4), "BRDT", _bridge(departure, left))
    off_at = left + sway(departure, "CHOK", up_to_min=1)
    yield operation(flid, off_at, "CHOK", _chocks(departure, left))
    known_at = left + _minutes(1) + sway(departure, "ACTM", up_to_min=3)
    yield operation(flid, known_at, "ACTM", leaf("ACTM", item_time(left)))
    if departure.diverted:
        diverted = element("FDIV", cdata("TEXT", "改降 diverted en route"), RSON="OPS")
        yield operation(flid, left + _minutes(150), "FDIV", diverted)
    elif departure.delay_min >= 60 and departure.arrived and departure.air_time:
        at = left + departure.air_time + _minutes(30)
        yield operation(flid, at, "ROUT", route(departure, left, departure.arrived))


def _bridge(departure: Departure, left: datetime) -> str:
    return element(
        "BRDT",
        leaf("BRDG", f"B{airport.gate(departure)}"),
        leaf("BATM", item_time(departure.scheduled - _minutes(60))),
        leaf("BDTM", item_time(left - _minutes(5))),
        BRNO="1",
    )


def _chocks(departure: Departure, left: datetime) -> str:
    return element(
        "CHOK",
        leaf("STND", airport.stand(departure)),
        leaf("CNTM", item_time(departure.scheduled - _minutes(63))),
        leaf("CFTM", item_time(left)),
        CONO="1",
    )


def _cancelled_at(departure: Departure) -> datetime:
    minutes = airport.fingerprint(departure, "cancelled") % 150 + 30
    return departure.scheduled - _minutes(minutes) + sway(departure, "CNCL", up_to_min=1)


def _cancelled(departure: Departure, at: datetime) -> Iterator[Draft]:
    """The word, gate and counters given back, and for some flights the deletion."""
    flid = departure.flid
    yield operation(flid, at, "CNCL", leaf("CNCL", item_time(at)))
    yield operation(flid, at + timedelta(seconds=20), "STAT", leaf("STAT", "CNL"))
    yield operation(
        flid, at + _minutes(1), "RMRK", cdata("RMRK", "航班取消 <cancelled>, see desk & app")
    )
    yield operation(flid, at + _minutes(3), "GTDT", element("GTDT", GTNO="0"))
    yield operation(flid, at + _minutes(5), "CKDT", element("CKDT", CKNO="0"))
    if one_in(departure, "FDEL", 6):
        deleted_at = at + _minutes(60)
        form = one_in(departure, "FDEL form", 2)
        yield deletion(flid, deleted_at, as_operation=form)
        if one_in(departure, "after FDEL", 3):
            afterwards = operation(flid, deleted_at + _minutes(9), "STAT", leaf("STAT", "CNL"))
            yield skipped(afterwards, "deleted")
