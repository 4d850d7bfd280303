"""A daily job: once per due day, in slices, whatever ends a process in between."""

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest

from fakes.manual_clock import ManualClock
from fakes.steps import Told
from msgexchange.ids import Fence
from msgexchange.lifecycle.daily import Daily
from msgexchange.pipeline.daily import (
    BREATH_S,
    REST_PER_WORK,
    TRY_AGAIN_S,
    DailyJob,
    Done,
    Slices,
)
from msgexchange.ports import Dependency, HistoryFailed, JobRun, Unavailable

HOUR_S = 3600.0
KEPT = datetime(2026, 8, 1, tzinfo=UTC)
FENCE = Fence(3)


@dataclass
class Runs:
    """JOB_RUN of one job."""

    run: JobRun | None = None
    begun: list[date] = field(default_factory=list)

    def last_run(self, job: str) -> JobRun | None:
        assert job == "sweep"
        return self.run

    def begin(self, fence: Fence, job: str, day: date, *, now: datetime) -> None:
        assert fence == FENCE
        self.begun.append(day)
        kept = None if self.run is None else self.run.kept_since
        self.run = JobRun(
            job=job, day=day, started_at=now, finished_at=None, outcome=None, kept_since=kept
        )

    def note(self, fence: Fence, job: str, outcome: str) -> None:
        assert (fence, job) == (FENCE, "sweep")
        assert self.run is not None
        self.run = replace(self.run, outcome=outcome)

    def finish(
        self, fence: Fence, job: str, outcome: str, *, kept_since: datetime | None, now: datetime
    ) -> None:
        assert (fence, job) == (FENCE, "sweep")
        assert self.run is not None
        self.run = replace(self.run, outcome=outcome, kept_since=kept_since, finished_at=now)


@dataclass
class Work:
    """Three slices; ``fails`` raises in the second."""

    sliced: int = 0
    fails: Exception | None = None

    def slices(self, *, now: datetime) -> Slices:
        return self._slices()

    def _slices(self) -> Slices:
        for number in range(3):
            if number == 1 and self.fails is not None:
                raise self.fails
            self.sliced += 1
            yield
        return Done("3 things done", KEPT)


def job(work: Work, runs: Runs, clock: ManualClock, told: Told | None = None) -> DailyJob:
    return DailyJob(
        "sweep",
        work,
        schedule=Daily(time(1), ZoneInfo("UTC")),
        store=runs,
        clock=clock,
        fence=FENCE,
        telemetry=told or Told(),
    )


def steps(daily: DailyJob, times: int) -> float:
    pause_s = 0.0
    for _ in range(times):
        pause_s = daily.step()
    return pause_s


def test_a_run_is_begun_when_it_is_due_and_goes_in_slices() -> None:
    runs, work, clock = Runs(), Work(), ManualClock(HOUR_S)
    daily = job(work, runs, clock)
    assert daily.step() < 1
    assert work.sliced == 1
    steps(daily, 3)
    assert work.sliced == 3
    assert runs.run is not None
    assert (runs.run.day, runs.run.outcome) == (date(2026, 9, 3), "3 things done")
    assert runs.run.kept_since == KEPT


def test_the_pause_between_slices_grows_with_what_a_slice_took() -> None:
    clock = ManualClock(HOUR_S)

    @dataclass
    class SlowWork(Work):
        def _slices(self) -> Slices:
            for took_s in (0.0, 0.5):
                clock.seconds += took_s
                yield
            return Done("2 things done")

    daily = job(SlowWork(), Runs(), clock)
    assert daily.step() == BREATH_S
    assert daily.step() == pytest.approx(0.5 * REST_PER_WORK)


def test_the_first_start_of_all_runs_for_the_day_before_when_today_is_not_due() -> None:
    runs, clock = Runs(), ManualClock(0)
    steps(job(Work(), runs, clock), 4)
    assert runs.begun == [date(2026, 9, 2)]


def test_restarts_of_the_process_repeat_nothing_that_is_through() -> None:
    runs, clock = Runs(), ManualClock(HOUR_S)
    steps(job(Work(), runs, clock), 4)
    for _ in range(5):
        again = Work()
        steps(job(again, runs, clock), 3)
        assert again.sliced == 0
    assert runs.begun == [date(2026, 9, 3)]


def test_a_run_that_was_broken_off_is_begun_again() -> None:
    runs, clock = Runs(), ManualClock(HOUR_S)
    steps(job(Work(), runs, clock), 2)
    work = Work()
    steps(job(work, runs, clock), 4)
    assert work.sliced == 3
    assert runs.begun == [date(2026, 9, 3)] * 2


def test_the_next_day_brings_the_next_run_and_missed_days_are_caught_up_by_one() -> None:
    runs, clock = Runs(), ManualClock(HOUR_S)
    daily = job(Work(), runs, clock)
    steps(daily, 4)
    clock.seconds += 23 * HOUR_S
    steps(daily, 4)
    clock.seconds += HOUR_S
    steps(daily, 4)
    clock.seconds += 72 * HOUR_S
    steps(daily, 8)
    assert runs.begun == [date(2026, 9, 3), date(2026, 9, 4), date(2026, 9, 7)]


def test_between_runs_the_clock_is_looked_at_every_hour_at_least() -> None:
    runs, clock = Runs(), ManualClock(HOUR_S)
    daily = job(Work(), runs, clock)
    assert steps(daily, 4) == HOUR_S
    clock.seconds += 23.5 * HOUR_S
    assert daily.step() == HOUR_S / 2


def test_a_failure_of_its_own_is_told_and_tried_again_and_is_no_run() -> None:
    told, clock = Told(), ManualClock(HOUR_S)
    runs, work = Runs(), Work(fails=HistoryFailed("disk full"))
    daily = job(work, runs, clock, told)
    assert steps(daily, 2) == TRY_AGAIN_S
    assert runs.run is not None
    assert runs.run.finished_at is None
    assert runs.run.outcome == "failed: disk full"
    assert told.alerts == ["job-failed"]
    work.fails = None
    steps(daily, 4)
    assert runs.run.outcome == "3 things done"


def test_an_outage_is_left_to_the_breaker_and_the_run_begun_again() -> None:
    runs, clock = Runs(), ManualClock(HOUR_S)
    work = Work(fails=Unavailable(Dependency.STORE, "down"))
    daily = job(work, runs, clock)
    daily.step()
    with pytest.raises(Unavailable):
        daily.step()
    work.fails = None
    steps(daily, 4)
    assert runs.run is not None
    assert runs.run.outcome == "3 things done"
