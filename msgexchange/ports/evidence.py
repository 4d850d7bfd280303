"""Own store: everything the invariants are judged by, as plain facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.state import FlightState
from msgexchange.ids import EventId, Flid, Identity, MailboxId
from msgexchange.lifecycle.states import ErrorClass, EventState, MessageState
from msgexchange.lifecycle.watermark import Gap
from msgexchange.ports.housekeeping import Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFact:
    """One inbox row."""

    message_id: MailboxId
    state: MessageState
    error_class: ErrorClass | None
    error: str | None
    note: str | None
    identity: Identity | None
    business_key: tuple[str, str, str, str] | None
    """SNDR, TYPE, STYP, SEQN; None where META could not be read."""
    received_at: datetime
    finished_at: datetime | None
    mark_intended: bool
    mark_confirmed: bool
    replayed: bool = False
    """A person had it replayed: it ended out of its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFact:
    """One outbox row."""

    event_id: EventId
    target: Target
    type: EventType
    flid: Flid | None
    message_id: MailboxId
    state_version: int | None
    state: EventState
    superseded_by: EventId | None
    error: str | None
    sent_at: datetime | None
    place: tuple[int, int] | None = None
    """Partition and offset of its record; None where the answer was lost or nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFact:
    """One provenance row."""

    flid: Flid
    version: int
    message_id: MailboxId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFacts:
    """The own store, one consistent read."""

    began_after: int
    """The first W: ids up to it were never asked for."""
    watermark: int
    messages: Sequence[MessageFact]
    gaps: Sequence[Gap]
    events: Sequence[EventFact]
    changes: Sequence[ChangeFact]
    flights: Sequence[FlightState]
    imported: Sequence[FlightState] = ()
    """Flights as they were brought in from another system."""
    ended: Mapping[Flid, int] = field(default_factory=dict)
    """FLID -> the version at which its last swept life ended."""
    kept_since: Mapping[Kept, datetime] = field(default_factory=dict)
    """What is older may be gone by retention; a kind that retention never ran for is not here."""


class Evidence(Protocol):
    def began_after(self) -> int:
        """The first W."""
        ...

    def facts(self) -> StoreFacts:
        """The whole store in one consistent read; as large as the store is."""
        ...
