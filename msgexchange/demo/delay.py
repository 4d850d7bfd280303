"""How a departure's delay becomes known: estimates that creep towards the truth, and causes."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgexchange.demo import airport
from msgexchange.demo.airport import one_in, sway
from msgexchange.demo.departures import Departure
from msgexchange.demo.drafts import Draft, operation
from msgexchange.demo.sis import element, item_time, leaf

REPORTED_FROM_MIN = 15
"""A delay shorter than this is nobody's news, as in the published statistics."""

_LONG_MIN = 60
_FIRST_WORD_BEFORE = timedelta(minutes=75)
_LAST_WORD_BEFORE = timedelta(minutes=45)


def estimates(departure: Departure, left: datetime) -> Iterator[Draft]:
    """ESTM: one for a flight in time, up to five for a late one; the last is the truth."""
    delay_min = departure.delay_min
    count = 1 if delay_min < REPORTED_FROM_MIN else 2 + min(3, delay_min // _LONG_MIN)
    for place in range(1, count + 1):
        known = _round_to_five(delay_min * place // count) if place < count else delay_min
        estimate = departure.scheduled + timedelta(minutes=known)
        yield operation(
            departure.flid,
            _announced_at(departure, left, place, count),
            "ESTM",
            leaf("ESTM", item_time(estimate)),
        )


def late(departure: Departure, left: datetime) -> Iterator[Draft]:
    """DELY with one cause or two, STAT for a long delay, and false alarms taken back."""
    first_word = _announced_at(departure, left, 1, 2) + timedelta(minutes=1)
    if departure.delay_min >= _LONG_MIN:
        yield from _long(departure, left, first_word)
    elif departure.delay_min >= REPORTED_FROM_MIN:
        cause = _cause(departure, "first", departure.delay_min)
        yield operation(departure.flid, first_word, "DELY", cause)
    elif departure.delay_min <= 0 and one_in(departure, "false alarm", 60):
        taken_back = first_word + timedelta(minutes=15)
        yield operation(departure.flid, first_word, "DELY", _cause(departure, "first", 20))
        yield operation(departure.flid, taken_back, "DELY", element("DELY"))


def _long(departure: Departure, left: datetime, first_word: datetime) -> Iterator[Draft]:
    """Half of it is announced with its cause, the rest gets a cause of its own later."""
    first_min = _round_to_five(departure.delay_min // 2)
    first = _cause(departure, "first", first_min)
    second = _cause(departure, "second", departure.delay_min - first_min)
    yield operation(departure.flid, first_word, "DELY", first)
    status_at = first_word + timedelta(seconds=15)
    yield operation(departure.flid, status_at, "STAT", leaf("STAT", "DLY"))
    yield operation(departure.flid, left - timedelta(minutes=41), "DELY", first + second)


def _cause(departure: Departure, purpose: str, minutes: int) -> str:
    code, text = airport.delay_cause(departure, purpose)
    return element("DELY", leaf("CODE", code), leaf("DURA", str(minutes)), leaf("TEXT", text))


def _announced_at(departure: Departure, left: datetime, place: int, count: int) -> datetime:
    """Spread from 75 minutes before schedule to 45 before the flight leaves."""
    first = departure.scheduled - _FIRST_WORD_BEFORE
    span = left - _LAST_WORD_BEFORE - first
    at = first + span * (place - 1) / count
    return at.replace(microsecond=0) + sway(departure, f"estimate {place}", up_to_min=4)


def _round_to_five(minutes: int) -> int:
    return max(5, 5 * round(minutes / 5))
