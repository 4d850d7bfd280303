"""What became of a message: values, never exceptions."""

from dataclasses import dataclass
from typing import TypeAlias

from msgexchange.flight.merge import Changes
from msgexchange.flight.state import FlightState


@dataclass(frozen=True, slots=True)
class Decision:
    """One flight moved from ``before`` (None = new to us) to ``after``.

    ``changes`` is what consumers are told; a flight that comes back from DELETED is told whole.
    """

    before: FlightState | None
    after: FlightState
    changes: Changes
    said: tuple[str, ...] = ()
    """Names the message spoke of, changed or not."""


@dataclass(frozen=True, slots=True)
class Applied:
    """SUCCEEDED: these flights changed, in message order."""

    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """SKIPPED with its reason code (``no-match:900123``); ``alert`` where a person must know."""

    reason: str
    alert: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """DEAD(PROTOCOL): the whole message is refused, and why."""

    reason: str


Outcome: TypeAlias = Applied | Skipped | Refused
