"""Flights that are past: which the history sweep takes, and what consumers hear of it (5.4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from msgexchange.flight.events import EventType, FlightEvent, Target
from msgexchange.flight.state import FlightState, FlightStatus

OURSELVES = "msgexchange"
"""``sndr`` of a notice that no message caused."""


@dataclass(frozen=True, slots=True)
class PastFlight:
    """A flight as history keeps it: its last state, whole."""

    state: FlightState
    written_at: datetime


def past_lives(written: Sequence[PastFlight], standing: FlightState | None) -> Sequence[PastFlight]:
    """The lives of one FLID that are over, oldest first: one per operation day (spec 2.6).

    What is written and then not deleted, because the flight changed or the process ended, is not
    over; a later version of the same day takes its place.
    """
    newest = {life.state.operation_day: life for life in written}
    if standing is not None:
        newest.pop(standing.operation_day, None)
    return sorted(newest.values(), key=lambda life: life.state.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPolicy:
    """``history.retention-days``, ``.silence`` and ``.terminal-stat``; days are the airport's."""

    retention_days: int = 3
    silence: timedelta = timedelta(hours=24)
    terminal_stat: frozenset[str] = frozenset()
    timezone: ZoneInfo

    def last_day(self, now: datetime) -> date:
        """The newest operation day whose retention is over."""
        return now.astimezone(self.timezone).date() - timedelta(days=self.retention_days + 1)


def is_past(
    state: FlightState, *, changed_at: datetime, now: datetime, policy: SweepPolicy
) -> bool:
    """Past its day, and over or silent; a flight without a day by silence alone.

    A flight delayed past its day and still active is not.
    """
    silent = now - changed_at >= policy.silence
    if state.operation_day is None:
        return silent
    if state.operation_day > policy.last_day(now):
        return False
    return silent or _is_over(state, policy)


def _is_over(state: FlightState, policy: SweepPolicy) -> bool:
    """Deleted, cancelled, arrived, or in a final status of the site's; an empty value is none."""
    content = state.content
    return (
        state.status is FlightStatus.DELETED
        or bool(content.get("CNCL"))
        or bool(content.get("ACTM"))
        or content.get("STAT") in policy.terminal_stat
    )


def ended(state: FlightState) -> FlightState:
    """The last version of a flight that leaves; one that was announced deleted has it already."""
    if state.status is FlightStatus.DELETED:
        return state
    return replace(state, status=FlightStatus.DELETED, version=state.version + 1)


def ending_events(state: FlightState, timezone: str) -> Iterator[FlightEvent]:
    """A NOTICE and a TOMBSTONE for a flight that nobody announced deleted; else nothing.

    They name the flight's last message; no message caused them, so sequence and time are null.
    """
    if state.status is FlightStatus.DELETED:
        return
    last = ended(state)
    notice: dict[str, Any] = {
        "changes": {"cleared": [], "replaced": {}, "set": {}},
        "dttm": None,
        "flid": last.flid,
        "kind": "FDEL",
        "messageId": last.last_message_id,
        "operationDay": last.operation_day and last.operation_day.isoformat(),
        "seqn": None,
        "sndr": OURSELVES,
        "stateVersion": last.version,
        "timezone": timezone,
    }
    yield FlightEvent(Target.MSG, EventType.NOTICE, last, notice)
    yield FlightEvent(Target.SCHD, EventType.TOMBSTONE, last, None)
