"""Own store: watermark, gap ledger, new inbox rows (spec 3.2)."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgexchange.ids import Fence
from msgexchange.lifecycle.watermark import Gap, MailboxRow, ScanPlan


@dataclass(frozen=True, slots=True)
class IntakeState:
    """The watermark and the ledger rows that reach above it, as a scan needs them.

    ``halted`` says why intake waits for an operator; ``step_rule_off`` that the declared id step
    was disproved.
    """

    watermark: int
    ledger: Sequence[Gap]
    began_after: int = 0
    halted: str | None = None
    step_rule_off: bool = False


class IntakeTransaction(Protocol):
    """Under the INBOX_CURSOR row's lock."""

    @property
    def watermark(self) -> int: ...

    @property
    def halted(self) -> str | None:
        """Why intake is halted, None where it is not."""
        ...

    def apply(
        self,
        plan: ScanPlan,
        *,
        now: datetime,
        origin: Callable[[], str | None] = lambda: None,
    ) -> int:
        """``origin`` makes each row's ``traceparent``.

        Insert the missing inbox rows as PENDING, rewrite the ledger, move W; rows inserted.
        """
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

    def begin_after(
        self, watermark: int, *, by: str, now: datetime, gaps: Sequence[Gap] = ()
    ) -> bool:
        """Set the first W with an audit row and these ledger rows below it; False (and nothing
        done) if W was ever set.
        """
        ...

    def is_new(self) -> bool:
        """True until ``begin_after`` was called or the first row was enqueued."""
        ...
