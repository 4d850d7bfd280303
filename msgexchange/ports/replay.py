"""Own store: what a replay would do, the order to do it, and the one transaction that does."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgexchange.ids import Fence, Flid, MailboxId
from msgexchange.ports.audit import Act
from msgexchange.ports.letters import Letter
from msgexchange.ports.pump import Batch, FoldReads


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """One version of a flight: which message spoke of which fields."""

    version: int
    message_id: MailboxId
    at: datetime
    fields: Collection[str]


class ReplayReads(FoldReads, Protocol):
    """Everything a prediction is made of, of one moment."""

    def letters(self, ids: Collection[MailboxId]) -> Sequence[Letter]:
        """These messages, whatever their state, in id order."""
        ...

    def sayings(self, flids: Collection[Flid]) -> Mapping[Flid, Sequence[Saying]]:
        """Every version that is known of these flights, oldest first."""
        ...

    def succeeded_after(
        self, types: Collection[str], after: MailboxId
    ) -> Mapping[str, Sequence[tuple[MailboxId, datetime]]]:
        """By TYPE, the messages above ``after`` that were applied, in id order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOrder:
    """A replay that a person wants carried out; ``plan`` holds what was predicted.

    ``begun`` counts the processes that took it on; ``outcome`` None: it waits for the leader.
    """

    order_id: str
    by: str
    reason: str
    allow_regression: bool
    plan: str
    created_at: datetime
    begun: int = 0
    finished_at: datetime | None = None
    outcome: str | None = None


class ReplayTransaction(ReplayReads, Protocol):
    """Holds the fence (shared) and the writer row; commits on a clean exit."""

    def open_order(self, order_id: str) -> ReplayOrder | None:
        """The order, None if it was finished meanwhile."""
        ...

    def commit_replay(
        self, batch: Batch, *, order: ReplayOrder, act: Act, now: datetime, codec_version: str
    ) -> None:
        """Everything of the batch, the finished order and the audit row; ``HeadsMoved`` if a
        message is not what it was.
        """
        ...

    def refuse(self, order: ReplayOrder, act: Act) -> None:
        """The order is finished, nothing of it was done, and the audit says why."""
        ...


class Replays(Protocol):
    def reading(self) -> AbstractContextManager[ReplayReads]:
        """One consistent read, no lock, no write."""
        ...

    def texts(self, ids: Collection[MailboxId]) -> Mapping[MailboxId, str]:
        """Raw texts the own store has kept."""
        ...

    def write_order(self, order: ReplayOrder) -> None:
        """Any process may: it takes the writer row, and applies no message."""
        ...

    def order(self, order_id: str) -> ReplayOrder | None: ...

    def orders(self, *, limit: int) -> Sequence[ReplayOrder]:
        """The newest first."""
        ...

    def next_order(self) -> ReplayOrder | None:
        """The oldest that waits for the leader."""
        ...

    def begin(self, fence: Fence, order_id: str) -> None:
        """Durably say, before any of its texts is decoded, that the order is being worked on."""
        ...

    def interrupted(self, fence: Fence, order_id: str) -> None:
        """It was put off, and not by the end of the process."""
        ...

    def transaction(self, fence: Fence) -> AbstractContextManager[ReplayTransaction]: ...
