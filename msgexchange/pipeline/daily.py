"""Daily duties: begun once per due day, in slices, told how they ended (spec 5.4)."""

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from msgexchange.clock import Clock
from msgexchange.ids import Fence
from msgexchange.lifecycle.daily import Daily
from msgexchange.pipeline.step import PauseS
from msgexchange.ports import HistoryFailed, JobStore, MessageFault, Telemetry

BREATH_S: PauseS = 0.02
"""Least pause between slices, so that the pump gets the writer row in between."""
REST_PER_WORK = 3
"""Pauses as long as so many times the slice took: most of the store's time stays the pump's."""
LOOK_AGAIN_S_MAX = 3600.0
"""A clock that was set must not leave a job asleep for a day."""
TRY_AGAIN_S = 600.0
"""After a failure that is the job's own."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a run ended, in words; ``kept_since``: what is older may be gone by it."""

    outcome: str
    kept_since: datetime | None = None


Slices: TypeAlias = Generator[None, None, Done]
"""A run: one bounded slice of work up to each yield."""


class Duty(Protocol):
    """What a daily job does; a run that was broken off may be begun again."""

    def slices(self, *, now: datetime) -> Slices: ...


class DailyJob:
    """One slice a step while a run is due; JOB_RUN remembers, so that restarts repeat nothing."""

    def __init__(
        self,
        name: str,
        duty: Duty,
        *,
        schedule: Daily,
        store: JobStore,
        clock: Clock,
        fence: Fence,
        telemetry: Telemetry,
    ) -> None:
        self._name = name
        self._duty = duty
        self._schedule = schedule
        self._store = store
        self._clock = clock
        self._fence = fence
        self._telemetry = telemetry
        self._run: Slices | None = None

    def step(self) -> PauseS:
        if self._run is None:
            pause_s = self._begin()
            if self._run is None:
                return pause_s
        run, self._run = self._run, None
        began_s = self._clock.monotonic()
        try:
            next(run)
        except StopIteration as end:
            self._finish(end.value)
            return self._until_next_s()
        except (HistoryFailed, MessageFault) as failure:
            self._store.note(self._fence, self._name, f"failed: {failure}")
            self._telemetry.alert("job-failed", f"{self._name}: {failure}")
            return TRY_AGAIN_S
        self._run = run
        return max(BREATH_S, REST_PER_WORK * (self._clock.monotonic() - began_s))

    def _begin(self) -> PauseS:
        """Begin the run that is due, if one is; else say when to look again."""
        now = self._clock.now()
        due = self._schedule.newest_due(now)
        last = self._store.last_run(self._name)
        if last is not None and last.finished_at is not None and last.day >= due:
            return self._until_next_s()
        self._store.begin(self._fence, self._name, due, now=now)
        self._run = self._duty.slices(now=now)
        return BREATH_S

    def _finish(self, done: Done) -> None:
        self._store.finish(
            self._fence,
            self._name,
            done.outcome,
            kept_since=done.kept_since,
            now=self._clock.now(),
        )
        self._telemetry.log("job.done", job=self._name, outcome=done.outcome)

    def _until_next_s(self) -> PauseS:
        wait: timedelta = self._schedule.until_next(self._clock.now())
        return min(max(wait.total_seconds(), BREATH_S), LOOK_AGAIN_S_MAX)
