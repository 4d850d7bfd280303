"""What the use cases need of the outside, cut at intent; adapters implement it (style rule 16).

Every call may raise the failures below and nothing else of a driver's.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.state import FlightState, Json
from msgexchange.ids import EventId, Fence, Flid, Identity, MailboxId
from msgexchange.lifecycle.identity import Holder
from msgexchange.lifecycle.states import ErrorClass, EventState, InboxEntry, MessageState
from msgexchange.lifecycle.watermark import Gap, MailboxRow, ScanPlan

# --- failures ----------------------------------------------------------------------------------


class Dependency(StrEnum):
    """What msgexchange cannot work without."""

    STORE = "store"
    MAILBOX = "mailbox"
    BROKER = "broker"


class PortError(Exception):
    """A call to the outside failed; the subclass says what the caller can do."""


class Unavailable(PortError):
    """Refused, timed out, dropped, read-only, disk full: try later, charge nobody."""

    def __init__(self, dependency: Dependency, reason: str) -> None:
        super().__init__(f"{dependency.value}: {reason}")
        self.dependency = dependency
        self.reason = reason


class RetryNow(PortError):
    """Deadlock or serialization failure: the same call may work at once."""


class MessageFault(PortError):
    """The database objects to what it was given: somebody's data is at fault."""


class Fenced(PortError):
    """Another process leads now: nothing of this transaction may commit."""


class HeadsMoved(PortError):
    """The heads are not what they were when the batch was read: drop it, uncharged."""


# --- mailbox -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listing:
    """Visible rows above W in id order; ``started_at`` is database time as the statement began."""

    rows: Sequence[MailboxRow]
    started_at: datetime


class TextMissing(StrEnum):
    """Why a raw text cannot be had."""

    ROW_GONE = "row gone"
    NO_TEXT = "text is NULL"
    TOO_LARGE = "text over the size limit"


Text: TypeAlias = str | TextMissing


class Mailbox(Protocol):
    """The shared CMINMSGS table, touched only as spec 3.1 allows. Each call is one statement."""

    def list_after(self, watermark: int, *, limit: int, id_max: int | None) -> Listing:
        """Rows with watermark < id (<= ``id_max``), in id order, at most ``limit``; ids and text
        lengths only, whatever their mark says.
        """
        ...

    def texts(self, ids: Sequence[MailboxId], *, bytes_max: int) -> Mapping[MailboxId, Text]:
        """Raw text of each id; one over ``bytes_max`` is never loaded."""
        ...

    def insert(self, text: str) -> MailboxId:
        """Write one row and commit. ``InsertUnknown`` if the outcome of the commit is not known."""
        ...

    def mark(self, ids: Sequence[MailboxId]) -> Mapping[MailboxId, "MarkOutcome"]:
        """Set the processed mark on rows that do not carry it; says what each id reads now."""
        ...

    def newest_id(self) -> int:
        """MAX(id), 0 for an empty table."""
        ...

    def oldest_id(self) -> int:
        """MIN(id), 0 for an empty table."""
        ...

    def check(self) -> Sequence[str]:
        """What is wrong or doubtful about the table and the server, each with what to do."""
        ...

    def close(self) -> None: ...


class InsertUnknown(PortError):
    """The connection was lost at COMMIT: the row may be there or not."""


class MarkOutcome(StrEnum):
    """What became of one mark."""

    MARKED = "marked"
    ROW_GONE = "row-gone"
    OTHER_VALUE = "other-value"


# --- own store: intake -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IntakeState:
    """The watermark and the gaps above it, as a scan needs them."""

    watermark: int
    ledger: Sequence[Gap]


class IntakeTransaction(Protocol):
    """Under the INBOX_CURSOR row's lock."""

    def state(self) -> IntakeState: ...

    def apply(self, plan: ScanPlan, *, now: datetime) -> int:
        """Insert the missing inbox rows as PENDING, rewrite the ledger, move W; rows inserted."""
        ...

    def enqueue(self, row: MailboxRow, *, now: datetime, traceparent: str | None) -> bool:
        """Insert one row above W as PENDING without moving W (HTTP entry); False if it is there
        already or lies below W.
        """
        ...


class IntakeStore(Protocol):
    """INBOX_CURSOR, INBOX_GAP, and new PROC_STATE rows."""

    def transaction(self, fence: Fence | None) -> AbstractContextManager[IntakeTransaction]:
        """Locks the cursor; checks the fence where one is given."""
        ...

    def state(self) -> IntakeState: ...

    def begin_after(self, watermark: int, *, by: str, now: datetime) -> bool:
        """Set the first W with an audit row; False (and nothing done) if W was ever set."""
        ...

    def is_new(self) -> bool:
        """True until ``begin_after`` was called or the first row was enqueued."""
        ...


# --- own store: pump ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaColumns:
    """META as PROC_STATE keeps it; all None when the message could not be decoded."""

    sndr: str | None = None
    type: str | None = None
    styp: str | None = None
    seqn: str | None = None
    dttm: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageResult:
    """What one commit writes on one message. ``identity`` None leaves duplicates unbound.

    ``error`` is the reason code or text (at most 2,000 characters, no NUL). ``taken_over_from``
    gives its identity up in the same commit.
    """

    message_id: MailboxId
    state: MessageState
    meta: MetaColumns
    identity: Identity | None
    sent_at: datetime | None
    error_class: ErrorClass | None
    last_cause: ErrorClass | None
    error: str | None
    attempts: int
    next_attempt_at: datetime | None
    started_at: datetime
    taken_over_from: MailboxId | None = None
    dead_text: str | None = None
    unknown: tuple[str, ...] = ()
    decision_note: str | None = None
    """Recorded beside the outcome: ``reuses:<id>``, ``supersedes:<id>``."""
    digest: str | None = None
    """Of the raw text, 32 hex digits: a duplicate with other content is told from a plain one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightWrite:
    """The final row of one flight in this commit: from what is stored to what will be.

    ``before`` None inserts. Groups (collections) equal before and after are not rewritten.
    """

    before: FlightState | None
    after: FlightState


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """Provenance: one row per (FLID, STATE_VERSION); ``changes`` is a JSON array of
    ``[field, old, new]`` with null for absent.
    """

    flid: Flid
    version: int
    message_id: MailboxId
    changes: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An outbox event to append; the store numbers it."""

    target: Target
    type: EventType
    partition_key: str
    flid: Flid | None
    message_id: MailboxId
    state_version: int | None
    operation_day: date | None
    payload: bytes | None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Everything one commit writes, in fold order."""

    messages: Sequence[MessageResult]
    flights: Sequence[FlightWrite] = ()
    changes: Sequence[ChangeRow] = ()
    events: Sequence[NewEvent] = ()
    plan_days: Mapping[date, datetime] = field(default_factory=dict)
    """Operation day -> DTTM of the plan applied to it in this batch."""
    exhausted_kinds: Sequence[tuple[str, str]] = ()
    """(TYPE, STYP) that died as UNSUPPORTED or CODEC_ERROR under this codec version."""
    marked: Mapping[MailboxId, MarkOutcome] = field(default_factory=dict)
    """Marks confirmed since the last commit ride along."""


class PumpTransaction(Protocol):
    """Holds the fence (shared) and the writer row; READ COMMITTED; commits on a clean exit."""

    def confirm_heads(self, entries: Sequence[InboxEntry]) -> None:
        """``HeadsMoved`` unless these are still the smallest non-terminal ids, unchanged."""
        ...

    def holders(self, identities: Iterable[Identity]) -> Mapping[Identity, Holder]:
        """Who holds each identity, in inbox or archive."""
        ...

    def flights(self, flids: Iterable[Flid]) -> Mapping[Flid, FlightState]: ...

    def last_versions(self, flids: Iterable[Flid]) -> Mapping[Flid, int]:
        """Version at which each swept flight's earlier life ended."""
        ...

    def newest_plans(self, days: Iterable[date]) -> Mapping[date, datetime]:
        """DTTM of the newest plan applied to each operation day."""
        ...

    def exhausted_kinds(self, codec_version: str) -> frozenset[tuple[str, str]]: ...

    def commit_batch(self, batch: Batch, *, now: datetime, codec_version: str) -> None:
        """Write it all in a constant number of statements; back-fill intents included."""
        ...


class PumpStore(Protocol):
    def heads(self, limit: int) -> Sequence[InboxEntry]:
        """The smallest non-terminal ids <= W, in id order."""
        ...

    def transaction(self, fence: Fence) -> AbstractContextManager[PumpTransaction]: ...

    def record_marks(self, marked: Mapping[MailboxId, MarkOutcome], *, now: datetime) -> None:
        """BACKFILL_AT for done marks; the sweep retries the rest."""
        ...

    def log_snapshot(self, entry: "SnapshotEntry") -> None:
        """One SCHD_SNAP_LOG row, outside the commit: losing it loses nothing."""
        ...

    def check_fence(self, fence: Fence) -> None:
        """``Fenced`` if another process leads now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEntry:
    """What became of a received plan."""

    message_id: MailboxId
    received_at: datetime
    kind: str
    scope_start: date | None
    scope_end: date | None
    flights: int
    outcome: str
    reason: str | None


# --- own store: back-fill ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DueMark:
    """A terminal message whose mark is not confirmed."""

    message_id: MailboxId
    attempts: int
    received_at: datetime


class BackfillStore(Protocol):
    def due_marks(
        self, *, now: datetime, overdue_before: datetime, limit: int
    ) -> Sequence[DueMark]:
        """Unmarked terminal messages due by BACKFILL_NEXT_AT, and every one received before
        ``overdue_before``, in id order.
        """
        ...

    def record_marks(self, marked: Mapping[MailboxId, MarkOutcome], *, now: datetime) -> None: ...

    def postpone_marks(self, next_at: Mapping[MailboxId, datetime], *, error: str) -> None:
        """One more failed try of each; when to try again."""
        ...

    def check_fence(self, fence: Fence) -> None: ...


# --- own store: delivery -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """A pending event with what its record carries (spec 4.4)."""

    event_id: EventId
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
    """One aggregation flush: a winner per flight and the older events it stands for."""

    flush_id: str
    winners: Sequence[OutboxEntry]


class SchdStore(Protocol):
    """KAFKA:schd: latest state per flight (spec 4.3)."""

    def begin_flush(
        self, fence: Fence, *, flush_id: str, limit: int, bytes_max: int, now: datetime
    ) -> Flush:
        """Commit ``flush_id`` on the winners (highest pending EVENT_ID per flight, flights with
        the oldest pending event first) and on the events they supersede. A flight whose winner
        backs off is held back.
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

    def next_due(self) -> datetime | None:
        """When the earliest backing-off winner is due, None if none backs off."""
        ...


# --- own store: leadership, time ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Which store this is, and how often it was restored from a backup (spec 4.1)."""

    store_id: str
    generation: int


class LeaderStore(Protocol):
    def info(self) -> StoreInfo: ...

    def take_leadership(self, owner: str, *, now: datetime) -> Fence:
        """Raise the fence by one and own it."""
        ...

    def database_now(self) -> datetime:
        """The database's clock, aware UTC."""
        ...


# --- own store: reads for people and programs ---------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """An event as ``GET /messages/{id}`` shows it."""

    event_id: EventId
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """A failed attempt."""

    attempt: int
    at: datetime
    error_class: ErrorClass
    error: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """One version of a flight: what changed and which message did it."""

    version: int
    message_id: MailboxId
    at: datetime
    changes: Sequence[tuple[str, Json | None, Json | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadView:
    """One line of the list of dead letters."""

    message_id: MailboxId
    error_class: ErrorClass
    last_cause: ErrorClass | None
    error: str | None
    meta: MetaColumns
    attempts: int
    received_at: datetime
    finished_at: datetime | None
    text_kept: bool


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
    unmarked: int
    oldest_pending_event_at: datetime | None


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

    def head(self) -> InboxEntry | None: ...

    def dead(self, *, limit: int) -> Sequence[DeadView]: ...

    def counts(self) -> StoreCounts: ...

    def probe(self) -> None:
        """Cheapest round trip; raises ``Unavailable``."""
        ...


# --- broker ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A Kafka record; ``value`` None is a tombstone."""

    key: bytes
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class RecordProducer(Protocol):
    """An ordered, idempotent producer of one topic."""

    def send(self, records: Sequence[Record]) -> Sequence[Delivery]:
        """Send in order, wait for every acknowledgement (bounded), one answer per record."""
        ...

    def probe(self) -> None:
        """A metadata round trip; raises ``Unavailable``."""
        ...

    def close(self) -> None: ...


# --- telemetry ---------------------------------------------------------------------------------


class Telemetry(Protocol):
    """What steps tell of their work; never fails and never blocks them."""

    def alert(self, name: str, text: str) -> None:
        """Something a person must know, by a fixed name; logged and counted."""
        ...

    def count(self, name: str, amount: int = 1, **labels: str) -> None: ...

    def observe(self, name: str, seconds: float) -> None: ...

    def log(self, event: str, **fields: object) -> None: ...
