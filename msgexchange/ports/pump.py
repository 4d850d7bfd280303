"""Own store: the one commit (spec 3.5)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.reference import Record, RecordKey, ReferenceChanges
from msgexchange.flight.state import FlightState, Json
from msgexchange.ids import EventId, Fence, Flid, Identity, MailboxId
from msgexchange.lifecycle.identity import Holder
from msgexchange.lifecycle.request import Request
from msgexchange.lifecycle.states import ErrorClass, InboxEntry, MessageState
from msgexchange.ports.audit import Act
from msgexchange.ports.mailbox import MarkOutcome


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
    kept: Mapping[str, Json] = field(default_factory=dict)
    """Unknown values that stand beside the flights: in META, beside the body, in a deletion."""
    decision_note: str | None = None
    """Recorded beside the outcome: ``reuses:<id>``, ``supersedes:<id>``."""
    mark_intended: bool = True
    """False in a shadow run: a terminal message then gets no back-fill intent."""
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
    redelivery_of: EventId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Everything one commit writes, in fold order."""

    messages: Sequence[MessageResult]
    left: Sequence[FlightState] = ()
    """Past flights that made way for a plan, each at the version it ended with; deleted before
    ``flights`` is written.
    """
    flights: Sequence[FlightWrite] = ()
    changes: Sequence[ChangeRow] = ()
    events: Sequence[NewEvent] = ()
    plan_days: Mapping[date, datetime] = field(default_factory=dict)
    """Operation day -> DTTM of the plan applied to it in this batch."""
    references: ReferenceChanges = field(default_factory=ReferenceChanges)
    exhausted_kinds: Sequence[tuple[str, str]] = ()
    """(TYPE, STYP) that died as UNSUPPORTED or CODEC_ERROR under this codec version."""
    requests: Sequence[Request] = ()
    """Requests that answers or errors moved on."""
    acts: Sequence[Act] = ()
    """For the audit."""
    marked: Mapping[MailboxId, MarkOutcome] = field(default_factory=dict)
    """Marks confirmed since the last commit ride along."""
    closes_attempt: bool = False
    """The open-attempt mark ends with this commit."""


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """The message a pump was working on when it ended, and how often that was so before."""

    message_id: MailboxId
    fence: Fence
    crashes: int


class FoldReads(Protocol):
    """What a fold is told of the store."""

    def holders(self, identities: Iterable[Identity]) -> Mapping[Identity, Holder]:
        """Who holds each identity, in inbox or archive."""
        ...

    def flights(self, flids: Iterable[Flid]) -> Mapping[Flid, FlightState]: ...

    def changed_at(self, flids: Iterable[Flid]) -> Mapping[Flid, datetime]:
        """When each of these flights last changed."""
        ...

    def last_versions(self, flids: Iterable[Flid]) -> Mapping[Flid, int]:
        """Version at which each swept flight's earlier life ended."""
        ...

    def newest_plans(self, days: Iterable[date]) -> Mapping[date, datetime]:
        """DTTM of the newest plan applied to each operation day."""
        ...

    def references(self, keys: Iterable[RecordKey]) -> Mapping[RecordKey, Record]:
        """What is stored of these records."""
        ...

    def exhausted_kinds(self, codec_version: str) -> frozenset[tuple[str, str]]: ...

    def requests(self) -> Mapping[str, Request]:
        """Open requests by kind."""
        ...


class PumpTransaction(FoldReads, Protocol):
    """Holds the fence (shared) and the writer row; READ COMMITTED; commits on a clean exit."""

    def confirm_heads(self, entries: Sequence[InboxEntry]) -> None:
        """``HeadsMoved`` unless these are still the smallest non-terminal ids, unchanged."""
        ...

    def commit_batch(self, batch: Batch, *, now: datetime, codec_version: str) -> None:
        """Write it all in a constant number of statements; back-fill intents included."""
        ...


class PumpStore(Protocol):
    def heads(self, limit: int) -> Sequence[InboxEntry]:
        """The smallest non-terminal ids <= W, in id order."""
        ...

    def transaction(self, fence: Fence) -> AbstractContextManager[PumpTransaction]: ...

    def open_attempt(self, fence: Fence, message_id: MailboxId, *, now: datetime) -> None:
        """Durably say, before its decoding, which message is being worked on."""
        ...

    def close_attempt(self, fence: Fence) -> None:
        """The attempt ended without an outcome, but not by the end of the process."""
        ...

    def found_attempt(self) -> OpenAttempt | None:
        """What an earlier pump left open."""
        ...

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
