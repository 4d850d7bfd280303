"""What the published day does not tell: gates, stands, counters, types, causes of delay.

Every value is derived from a digest of the flight, so the same day always looks the same.
"""

from datetime import timedelta
from hashlib import blake2b

from msgexchange.demo.departures import Departure

REGIONAL = frozenset({"9E", "EV", "MQ", "YV"})
"""Carriers of this day that fly regional jets: no bridge, one counter."""

_REGIONAL_TYPES: tuple[str, ...] = ("CRJ2", "E145", "CRJ7")
_NARROW_TYPES: tuple[str, ...] = ("A320", "B738", "A319", "B752")
_WIDE_TYPES: tuple[str, ...] = ("B763", "A332", "B772")
_WIDE_FROM_MI = 3000
_CAUSES = (
    ("93", "Aircraft rotation"),
    ("81", "ATC restriction & flow control"),
    ("71", "Weather at departure station"),
    ("41", "Aircraft defect"),
    ("15", "Boarding, missing passengers"),
    ("64", "Crew < minimum, standby called"),
)


def fingerprint(departure: Departure, purpose: str) -> int:
    """A stable number of 32 bits: one independent throw of the dice per flight and purpose."""
    return _number(f"{purpose}:{departure.flid}:{departure.flight}")


def one_in(departure: Departure, purpose: str, count: int) -> bool:
    """True for about one flight in ``count``."""
    return fingerprint(departure, purpose) % count == 0


def sway(departure: Departure, purpose: str, *, up_to_min: int) -> timedelta:
    """Whole seconds from 0 up to ``up_to_min`` minutes, so that not everybody acts at once."""
    return timedelta(seconds=fingerprint(departure, f"sway {purpose}") % (up_to_min * 60))


def terminal(departure: Departure) -> str:
    """Airport and terminal letter; a carrier keeps to one terminal of an airport."""
    letter = "ABC"[_number(f"terminal:{departure.origin}:{departure.carrier}") % 3]
    return f"{departure.origin}-{letter}"


def gate(departure: Departure, purpose: str = "gate") -> str:
    return f"{_pier(departure)}{fingerprint(departure, purpose) % 38 + 1:02d}"


def stand(departure: Departure, purpose: str = "stand") -> str:
    return f"{_pier(departure)}{fingerprint(departure, purpose) % 60 + 101}"


def counters(departure: Departure) -> tuple[str, ...]:
    first = fingerprint(departure, "counter") % 90 + 1
    count = 1 if departure.carrier in REGIONAL else 2
    return tuple(f"{departure.origin[0]}{first + place:02d}" for place in range(count))


def chute(departure: Departure) -> str:
    return f"{_pier(departure)}C{fingerprint(departure, 'chute') % 12 + 1:02d}"


def aircraft_type(departure: Departure, purpose: str = "type") -> str:
    """A type of the size that the carrier and the distance ask for."""
    types = _WIDE_TYPES if departure.distance_mi >= _WIDE_FROM_MI else _NARROW_TYPES
    if departure.carrier in REGIONAL:
        types = _REGIONAL_TYPES
    return types[fingerprint(departure, purpose) % len(types)]


def delay_cause(departure: Departure, purpose: str) -> tuple[str, str]:
    """A delay code and its text."""
    return _CAUSES[fingerprint(departure, f"cause {purpose}") % len(_CAUSES)]


def _pier(departure: Departure) -> str:
    return f"{departure.origin[0]}{terminal(departure)[-1]}"


def _number(text: str) -> int:
    # A checksum would tie the throws together: CRCs of equally long texts differ by constants.
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())
