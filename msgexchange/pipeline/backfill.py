"""The processed mark in the mailbox: written after the commit, retried until it is there (3.6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.pipeline.step import NOW, PauseS
from msgexchange.ports import (
    BackfillStore,
    DueMark,
    Mailbox,
    MarkOutcome,
    MessageFault,
    RetryNow,
    Telemetry,
    Unavailable,
)

MARK_BACKOFF = Backoff(base=timedelta(seconds=30), cap=timedelta(minutes=15))


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRules:
    """``pipeline.backfill-batch``, ``pipeline.overdue-backfill`` (R); sweeps every 30 s."""

    batch_max: int = 500
    overdue_after: timedelta = timedelta(hours=24)
    sweep_interval: timedelta = timedelta(seconds=30)


class BackfillSweep:
    """Marks what the pump could not mark, in bounded slices."""

    def __init__(
        self,
        *,
        store: BackfillStore,
        mailbox: Mailbox,
        clock: Clock,
        fence: Fence,
        rules: BackfillRules,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._mailbox = mailbox
        self._clock = clock
        self._fence = fence
        self._rules = rules
        self._telemetry = telemetry

    def step(self) -> PauseS:
        now = self._clock.now()
        due = self._store.due_marks(
            now=now, overdue_before=now - self._rules.overdue_after, limit=self._rules.batch_max
        )
        if due and self._mark(due) and len(due) >= self._rules.batch_max:
            return NOW
        return self._rules.sweep_interval.total_seconds()

    def _mark(self, due: Sequence[DueMark]) -> bool:
        """True when every mark of the slice is confirmed."""
        self._alert_overdue(due)
        self._store.check_fence(self._fence)
        try:
            marked = self._mailbox.mark([mark.message_id for mark in due])
        except (Unavailable, RetryNow, MessageFault) as failure:
            self._postpone(due, str(failure))
            if isinstance(failure, Unavailable):
                raise
            return False
        self._store.record_marks(marked, now=self._clock.now())
        foreign = [id_ for id_, outcome in marked.items() if outcome is MarkOutcome.OTHER_VALUE]
        if foreign:
            self._telemetry.alert("mark-other-value", f"rows {foreign[:20]} carry another mark")
        return not foreign

    def _postpone(self, due: Sequence[DueMark], error: str) -> None:
        now = self._clock.now()
        self._store.postpone_marks(
            {mark.message_id: now + MARK_BACKOFF.after(mark.attempts + 1) for mark in due},
            error=error,
        )

    def _alert_overdue(self, due: Sequence[DueMark]) -> None:
        overdue_before = self._clock.now() - self._rules.overdue_after
        overdue: list[MailboxId] = [m.message_id for m in due if m.received_at <= overdue_before]
        if overdue:
            self._telemetry.alert(
                "mark-overdue",
                f"{len(overdue)} terminal messages are unmarked since more than "
                f"{self._rules.overdue_after}, the first is {overdue[0]}",
            )
