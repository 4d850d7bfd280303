"""Maintenance in slices: several jobs taking turns in one step (spec 5.4)."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgexchange.clock import Clock
from msgexchange.lifecycle.breaker import Breaker
from msgexchange.pipeline.step import Guarded, PauseS, Step
from msgexchange.ports import Telemetry


@dataclass(frozen=True, slots=True)
class Job:
    """One duty: a step that does a bounded slice and says when it is due again."""

    name: str
    step: Step


@dataclass(slots=True)
class _Turn:
    job: Job
    guarded: Guarded
    due_at_s: float


class Jobs:
    """Runs the job that is due longest, one slice a step, so that none starves another.

    Each waits behind a breaker of its own: a mailbox that is down does not hold up the jobs that
    need only the own store.
    """

    def __init__(self, jobs: Sequence[Job], clock: Clock, telemetry: Telemetry) -> None:
        self._clock = clock
        now_s = clock.monotonic()
        self._turns = [_Turn(job, Guarded(job.step, clock, telemetry), now_s) for job in jobs]

    @property
    def breaker(self) -> Breaker | None:
        """The breaker that has been open longest among the jobs."""
        held = [turn.guarded.breaker for turn in self._turns]
        return min((one for one in held if one), key=lambda one: one.since, default=None)

    def nudge(self) -> None:
        """Whoever waits for a dependency tries again at the next step."""
        for turn in self._turns:
            if turn.guarded.breaker is not None:
                turn.guarded.nudge()
                turn.due_at_s = self._clock.monotonic()

    def step(self) -> PauseS:
        turn = min(self._turns, key=lambda turn: turn.due_at_s)
        wait_s = turn.due_at_s - self._clock.monotonic()
        if wait_s > 0:
            return wait_s
        pause_s = turn.guarded.step()
        now_s = self._clock.monotonic()
        turn.due_at_s = now_s + pause_s
        return max(min(turn.due_at_s for turn in self._turns) - now_s, 0.0)
