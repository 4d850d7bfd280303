"""Own store: dead letters and skipped messages a person may act on, and what people did."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports.audit import Act
from msgexchange.ports.pump import MetaColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message as those see it who decide about it; from the inbox or its archive."""

    message_id: MailboxId
    state: MessageState
    error_class: ErrorClass | None
    last_cause: ErrorClass | None
    error: str | None
    meta: MetaColumns
    attempts: int
    received_at: datetime
    finished_at: datetime | None
    discarded_at: datetime | None
    replayed_at: datetime | None
    digest: str | None
    """Of the raw text when it was last read, 32 hex digits."""
    text_bytes: int | None
    traceparent: str | None
    text_kept: bool
    """The own store holds its raw text."""
    archived: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterQuery:
    """Which letters: all that is given holds. ``ids`` names messages of any state.

    ``error_class`` is met by the class or by the last cause, ``kind`` is TYPE or TYPE/STYP;
    ``since`` and ``before`` bound the time a message was taken in.
    """

    ids: Collection[MailboxId] | None = None
    skipped: bool = False
    """Skipped messages that may be replayed, instead of dead ones."""
    discarded: bool = False
    """Discarded dead letters, instead of those that wait for a person."""
    error_class: ErrorClass | None = None
    skip_code: str | None = None
    kind: str | None = None
    sender: str | None = None
    since: datetime | None = None
    before: datetime | None = None
    limit: int = 1_000


class LettersTransaction(Protocol):
    """Under the writer row's lock: nobody replays or discards meanwhile."""

    def letters(self, ids: Collection[MailboxId]) -> Sequence[Letter]: ...

    def discard(self, ids: Sequence[MailboxId], *, by: str, reason: str, now: datetime) -> None:
        """Close these dead letters, drop their kept texts, and write the audit row."""
        ...


class Letters(Protocol):
    def find(self, query: LetterQuery) -> Sequence[Letter]:
        """The newest first; one consistent read."""
        ...

    def texts(self, ids: Collection[MailboxId]) -> Mapping[MailboxId, str]:
        """Raw texts the own store has kept."""
        ...

    def transaction(self) -> AbstractContextManager[LettersTransaction]:
        """Any process may: it takes the writer row, and applies no message."""
        ...


class Audit(Protocol):
    def acts(
        self,
        *,
        act: str | None = None,
        by: str | None = None,
        since: datetime | None = None,
        limit: int,
    ) -> Sequence[Act]:
        """What people did, the newest first."""
        ...
