"""Own store: the gap ledger below W, and intake that an operator must decide on (spec 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.gap import Gap
from msgexchange.lifecycle.ranges import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRow:
    """A row that came below W: what the inbox shall hold of it.

    ``text`` is kept where the row dies; None where it could not be had.
    """

    message_id: MailboxId
    text_bytes: int | None
    text: str | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """An operator's word that intake may go on, and why."""

    by: str
    reason: str
    at: datetime


class GapStore(Protocol):
    """INBOX_GAP rows that W has passed, and the halt of intake in INBOX_CURSOR."""

    def due_for_look(self, *, now: datetime, limit: int) -> Sequence[Gap]:
        """Passed rows that the late watch must read again, by id."""
        ...

    def strangers(self, ids: Sequence[int]) -> Sequence[int]:
        """Which of these ids, none above W, nothing here knows: no inbox row, no ledger row, and
        above the first W.
        """
        ...

    def unknown(self, ids: Sequence[int]) -> Sequence[int]:
        """Which of these ids have no inbox row, archived ones included."""
        ...

    def record_looks(
        self,
        fence: Fence,
        *,
        looked: Sequence[Gap],
        written: Sequence[Gap],
        late: Sequence[LateRow],
        dies: bool,
        marks: bool,
        now: datetime,
    ) -> None:
        """Replace the rows looked at, and take late rows in as DEAD(LATE), with a back-fill intent
        where ``marks``, or, unless ``dies``, as PENDING; one transaction.
        """
        ...

    def halt(self, fence: Fence, why: str, *, now: datetime) -> None:
        """Intake stops until ``accept``; survives restarts."""
        ...

    def turn_step_rule_off(self, fence: Fence, why: str, *, now: datetime) -> None:
        """The declared id step is not believed any more; survives restarts, with an audit row."""
        ...

    def accept(self, acceptance: Acceptance, strangers: Sequence[Range]) -> None:
        """Intake goes on: ledger these ranges for the late watch, with an audit row."""
        ...
