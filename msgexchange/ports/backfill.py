"""Own store: which marks are missing (spec 3.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgexchange.ids import Fence, MailboxId
from msgexchange.ports.mailbox import MarkOutcome


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
        ``overdue_before``; those that wait longest for a try come first.
        """
        ...

    def record_marks(self, marked: Mapping[MailboxId, MarkOutcome], *, now: datetime) -> None: ...

    def postpone_marks(self, next_at: Mapping[MailboxId, datetime], *, error: str) -> None:
        """One more failed try of each; when to try again."""
        ...

    def check_fence(self, fence: Fence) -> None: ...
