"""Own store: reads for people and programs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.reference import Record, RecordKey
from msgexchange.flight.state import FlightState, Json
from msgexchange.ids import EventId, Flid, Identity, MailboxId
from msgexchange.lifecycle.gap import Gap
from msgexchange.lifecycle.states import ErrorClass, EventState, InboxEntry, MessageState
from msgexchange.ports.audit import Act
from msgexchange.ports.leader import LeaseView
from msgexchange.ports.pump import MetaColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """An event and what became of it; its payload is left out."""

    event_id: EventId
    message_id: MailboxId
    target: Target
    type: EventType
    flid: Flid | None
    state_version: int | None
    state: EventState
    superseded_by: EventId | None
    attempts: int
    error: str | None
    partition: int | None
    offset: int | None
    created_at: datetime
    sent_at: datetime | None
    next_attempt_at: datetime | None = None
    redelivery_of: EventId | None = None
    redelivered_as: EventId | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """A failed attempt; ``round`` counts the replays before it."""

    round: int = 0
    attempt: int
    at: datetime
    error_class: ErrorClass
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """One version of a flight: what changed and which message did it."""

    flid: Flid
    version: int
    message_id: MailboxId
    at: datetime
    changes: Sequence[tuple[str, Json | None, Json | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """A message as people see it; from the inbox or its archive."""

    message_id: MailboxId
    state: MessageState
    error_class: ErrorClass | None
    last_cause: ErrorClass | None
    error: str | None
    note: str | None
    identity: Identity | None
    meta: MetaColumns
    attempts: int
    next_attempt_at: datetime | None
    unknown: tuple[str, ...]
    marked_at: datetime | None
    mark_error: str | None
    received_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    traceparent: str | None
    flids: tuple[Flid, ...]
    events: tuple[EventView, ...]
    failures: tuple[AttemptView, ...]
    kept: Mapping[str, Json] = field(default_factory=dict)
    changes: tuple[ChangeView, ...] = ()
    """Of its first flights by FLID; a plan has more."""
    gaps: tuple[Gap, ...] = ()
    """Missing ids below it that were open while it waited, the nearest first."""
    acts: tuple[Act, ...] = ()
    text_bytes: int | None = None
    discarded_at: datetime | None = None
    archived_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCounts:
    """The flow in numbers, one consistent read."""

    watermark: int
    messages: Mapping[MessageState, int]
    dead_by_class: Mapping[ErrorClass, int]
    events: Mapping[tuple[Target, EventState], int]
    flights: int
    open_gaps: int
    oldest_gap_first_seen: datetime | None
    permanent_ids: int
    """Mailbox ids that W passed without a row; declared ones left out."""
    late: int
    """Rows that came after that."""
    halted: str | None
    """Why intake waits for an operator."""
    head_received_at: datetime | None
    """When the message everybody waits for was taken in."""
    unmarked: int
    oldest_unmarked_at: datetime | None
    """Since when a terminal message has been without its mark."""
    oldest_pending_event_at: datetime | None
    open_requests: Mapping[str, int]
    """Requests to the AODB without an end: ``plan`` and ``reference``."""
    oldest_request_at: datetime | None
    """Since when the oldest of them has been open."""
    last_received: Mapping[str, datetime]
    """Newest message of each sender in the inbox, of the 100 senders heard of last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceView:
    """A reference record, and the message that last told of it."""

    type: str
    key: str
    record: Record
    last_message_id: MailboxId
    updated_at: datetime


class Reads(Protocol):
    """Consistent reads, no lock, no write."""

    def flight(self, flid: Flid) -> FlightState | None: ...

    def flights(
        self,
        *,
        operation_day: date | None,
        status: str | None,
        after: Flid | None,
        limit: int,
    ) -> Sequence[FlightState]:
        """In FLID order; ``status`` None means every status."""
        ...

    def changes(self, flid: Flid) -> Sequence[ChangeView]: ...

    def message(self, message_id: MailboxId) -> MessageView | None: ...

    def event(self, event_id: EventId) -> EventView | None: ...

    def events_of(self, flid: Flid, message_ids: Sequence[MailboxId]) -> Sequence[EventView]:
        """What these messages told of this flight, in EVENT_ID order."""
        ...

    def acts_on(self, event_id: EventId) -> Sequence[Act]:
        """What people did to an event, oldest first."""
        ...

    def traceparents(self, message_ids: Sequence[MailboxId]) -> Mapping[MailboxId, str]:
        """The contexts of those that have one, archived ones included."""
        ...

    def head(self) -> InboxEntry | None: ...

    def gaps(self, *, every: bool, limit: int) -> Sequence[Gap]:
        """The gap ledger from its newest row down: what is open or late or, with ``every``, all."""
        ...

    def references(self, type_: str, *, after: str | None, limit: int) -> Sequence[ReferenceView]:
        """Records of a reference type in key order."""
        ...

    def records(self, keys: Iterable[RecordKey]) -> Mapping[RecordKey, Record]:
        """What is stored of these reference records."""
        ...

    def counts(self) -> StoreCounts: ...

    def leadership(self) -> LeaseView: ...

    def probe(self) -> None:
        """Cheapest round trip; raises ``Unavailable``."""
        ...
