"""Own store: dead events, and what a person does about one (spec 4.6)."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.state import FlightState
from msgexchange.ids import EventId, Flid, MailboxId
from msgexchange.ports.pump import NewEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEvent:
    """An event the broker would not take; ``redelivered_as`` names the one sent in its place."""

    event_id: EventId
    target: Target
    type: EventType
    partition_key: str
    flid: Flid | None
    message_id: MailboxId
    state_version: int | None
    operation_day: date | None
    payload: bytes | None
    traceparent: str | None
    attempts: int
    error: str | None
    created_at: datetime
    redelivered_as: EventId | None


class RedeliveryTransaction(Protocol):
    """Under the writer row's lock: no event is appended meanwhile."""

    def dead(self, event_id: EventId) -> DeadEvent | None:
        """The event if it is dead, None if it is not or does not exist."""
        ...

    def flight(self, flid: Flid) -> FlightState | None: ...

    def replace(
        self, dead: DeadEvent, successor: NewEvent, *, by: str, reason: str, now: datetime
    ) -> EventId:
        """Append the successor, name it in the dead event, and write the audit row."""
        ...


class Redelivery(Protocol):
    def dead_events(self, *, limit: int) -> Sequence[DeadEvent]:
        """Dead events that nothing was sent in place of, the newest first."""
        ...

    def transaction(self) -> AbstractContextManager[RedeliveryTransaction]:
        """Any process may: it takes the writer row, and applies no message."""
        ...
