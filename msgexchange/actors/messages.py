"""What actors tell each other: small, typed, never the only copy of anything."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wake:
    """There may be work; correctness never depends on its arrival."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The pause of turn ``number`` is over; ignored if another turn began meanwhile."""

    number: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The actor called ``name`` ended by an exception that left its step."""

    name: str
    failure: BaseException


@dataclass(frozen=True, slots=True)
class Restart:
    """The back-off of the actor called ``name`` is over."""

    name: str


@dataclass(frozen=True, slots=True)
class Inspect:
    """Time to look at the pulses of all actors."""
