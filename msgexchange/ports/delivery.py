"""Own store: events on their way out (spec 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol, TypeAlias

from msgexchange.flight.events import EventType, Target
from msgexchange.ids import EventId, Fence, Flid, MailboxId


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """A pending event with what its record carries (spec 4.4)."""

    event_id: EventId
    nonce: int
    type: EventType
    partition_key: str
    flid: Flid | None
    message_id: MailboxId
    state_version: int | None
    operation_day: date | None
    payload: bytes | None
    attempts: int
    next_attempt_at: datetime | None
    traceparent: str | None
    redelivery_of: EventId | None = None
    previous_is_dead: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The broker has the record."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class RecordRefused:
    """The broker refused this record for good (too large, invalid): charged."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotDelivered:
    """Not acknowledged, not the record's fault: nobody is charged."""

    reason: str


Delivery: TypeAlias = Acknowledged | RecordRefused | NotDelivered


@dataclass(frozen=True, slots=True)
class EventFailure:
    """A charged failure of an event: when to try again, or None = DEAD."""

    event_id: EventId
    attempts: int
    next_attempt_at: datetime | None
    error: str


class OutboxStore(Protocol):
    """One ordered target: KAFKA:msg."""

    def pending(self, target: Target, *, limit: int, bytes_max: int) -> Sequence[OutboxEntry]:
        """Oldest PENDING events in EVENT_ID order; at least one even if over ``bytes_max``."""
        ...

    def mark_sent(
        self, fence: Fence, sent: Mapping[EventId, Acknowledged], *, now: datetime
    ) -> None: ...

    def charge(self, fence: Fence, failure: EventFailure, *, now: datetime) -> None: ...

    def check_fence(self, fence: Fence) -> None: ...


@dataclass(frozen=True, slots=True)
class Flush:
    """One aggregation flush: a winner per flight and the older events it stands for.

    ``more``: a bound cut it, so that others may wait for the next one.
    """

    flush_id: str
    winners: Sequence[OutboxEntry]
    more: bool = False


class SchdStore(Protocol):
    """KAFKA:schd: latest state per flight (spec 4.3)."""

    def begin_flush(
        self, fence: Fence, *, flush_id: str, limit: int, bytes_max: int, now: datetime
    ) -> Flush:
        """Commit ``flush_id`` on the winners (highest pending EVENT_ID per flight, flights with
        the oldest pending event first), each for itself and for the older pending events of its
        flight. A flight whose winner backs off is held back; one that was refused before goes
        alone, so that it spoils no other's flush.
        """
        ...

    def end_flush(
        self, fence: Fence, flush: Flush, sent: Mapping[EventId, Acknowledged], *, now: datetime
    ) -> None:
        """Winners in ``sent`` become SENT, what they supersede SUPERSEDED by them; the others
        are pending again, without a flush id.
        """
        ...

    def charge(self, fence: Fence, failure: EventFailure, *, now: datetime) -> None:
        """One more failure of a winner; when it dies its superseded events become SUPERSEDED."""
        ...

    def check_fence(self, fence: Fence) -> None: ...
