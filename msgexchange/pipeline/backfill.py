"""The processed mark in the mailbox: written after the commit, retried until it is there (3.6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgexchange.clock import Clock
from msgexchange.ids import Fence
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

ROWS_TOLD_MAX = 20
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
        whole = [self._mark(part, overwrite=late) for part, late in self._parts(due, now) if part]
        if due and all(whole) and len(due) >= self._rules.batch_max:
            return NOW
        return self._rules.sweep_interval.total_seconds()

    def _parts(
        self, due: Sequence[DueMark], now: datetime
    ) -> Sequence[tuple[Sequence[DueMark], bool]]:
        """Marks that respect another's value, then those that are overdue and do not."""
        overdue_before = now - self._rules.overdue_after
        young = [mark for mark in due if mark.received_at > overdue_before]
        overdue = [mark for mark in due if mark.received_at <= overdue_before]
        return (young, False), (overdue, True)

    def _mark(self, due: Sequence[DueMark], *, overwrite: bool) -> bool:
        """True when every mark of the slice is confirmed."""
        if overwrite:
            self._alert_overdue(due)
        self._store.check_fence(self._fence)
        try:
            marked = self._mailbox.mark([mark.message_id for mark in due], overwrite=overwrite)
        except (Unavailable, RetryNow, MessageFault) as failure:
            self._postpone(due, str(failure))
            if isinstance(failure, Unavailable):
                raise
            return False
        foreign = [mark for mark in due if marked[mark.message_id] is MarkOutcome.OTHER_VALUE]
        done = {id_: how for id_, how in marked.items() if how is not MarkOutcome.OTHER_VALUE}
        self._store.record_marks(done, now=self._clock.now())
        if foreign:
            self._postpone(foreign, MarkOutcome.OTHER_VALUE.value)
            rows = ", ".join(str(mark.message_id) for mark in foreign[:ROWS_TOLD_MAX])
            text = f"{len(foreign)} terminal rows carry another program's value: {rows}"
            self._telemetry.alert("mark-other-value", text)
        return not foreign

    def _postpone(self, due: Sequence[DueMark], error: str) -> None:
        now = self._clock.now()
        self._store.postpone_marks(
            {mark.message_id: now + MARK_BACKOFF.after(mark.attempts + 1) for mark in due},
            error=error,
        )

    def _alert_overdue(self, overdue: Sequence[DueMark]) -> None:
        first = min(mark.message_id for mark in overdue)
        self._telemetry.alert(
            "mark-overdue",
            f"{len(overdue)} terminal messages are unmarked {self._rules.overdue_after} after "
            f"they were received, the first is {first}; the mark is written over any other value",
        )
