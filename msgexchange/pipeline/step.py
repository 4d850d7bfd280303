"""What a step is, and how one pauses behind a dependency that is down (spec 3.3, 6.1)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol, TypeAlias

from msgexchange.clock import Clock
from msgexchange.lifecycle.breaker import Breaker, tripped
from msgexchange.ports import RetryNow, Telemetry, Unavailable

PauseS: TypeAlias = float
"""Seconds until the next step is due unless someone wakes it; 0 = at once."""

NOW: PauseS = 0.0


class Step(Protocol):
    """One bounded turn of work; knows neither threads nor actors."""

    def step(self) -> PauseS: ...


class Unhurried:
    """A step whose short pauses are rests: no wake-up cuts them short."""

    def __init__(self, inner: Step, clock: Clock, *, rest_max_s: PauseS) -> None:
        self._inner = inner
        self._clock = clock
        self._rest_max_s = rest_max_s
        self._rests_until_s = float("-inf")

    def step(self) -> PauseS:
        left_s = self._rests_until_s - self._clock.monotonic()
        if left_s > 0:
            return left_s
        pause_s = self._inner.step()
        if pause_s <= self._rest_max_s:
            self._rests_until_s = self._clock.monotonic() + pause_s
        return pause_s


class Breakable(Protocol):
    """Whatever may stand behind a breaker, for health to tell and probes to nudge."""

    @property
    def breaker(self) -> Breaker | None: ...

    def nudge(self) -> None: ...


class Guarded:
    """A step that waits behind a breaker while a dependency is down, and charges nobody.

    ``resumed`` is told how long the pause was when the dependency is back.
    """

    def __init__(
        self,
        inner: Step,
        clock: Clock,
        telemetry: Telemetry,
        resumed: Callable[[timedelta], None] = lambda _pause: None,
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._telemetry = telemetry
        self._resumed = resumed
        self._breaker: Breaker | None = None
        self._opened_at_s = 0.0
        self._retry_at_s = 0.0

    @property
    def breaker(self) -> Breaker | None:
        """The open breaker, None while work goes on."""
        return self._breaker

    def nudge(self) -> None:
        """A health probe succeeded: try again at the next step instead of waiting."""
        self._retry_at_s = 0.0

    def step(self) -> PauseS:
        if self._breaker is not None:
            left = self._retry_at_s - self._clock.monotonic()
            if left > 0:
                return left
        try:
            pause = self._inner.step()
        except Unavailable as outage:
            return self._open(outage)
        except RetryNow as conflict:
            self._telemetry.log("step.retry-now", reason=str(conflict))
            return NOW
        if self._breaker is not None:
            self._close(self._breaker)
        return pause

    def _open(self, outage: Unavailable) -> PauseS:
        if self._breaker is None:
            self._opened_at_s = self._clock.monotonic()
            self._telemetry.alert("breaker-open", str(outage))
        self._breaker = tripped(
            self._breaker,
            dependency=outage.dependency.value,
            reason=outage.reason,
            now=self._clock.now(),
        )
        pause = self._breaker.pause.total_seconds()
        self._retry_at_s = self._clock.monotonic() + pause
        return pause

    def _close(self, breaker: Breaker) -> None:
        pause = timedelta(seconds=self._clock.monotonic() - self._opened_at_s)
        self._breaker = None
        self._telemetry.log(
            "breaker.closed", dependency=breaker.dependency, paused_s=pause.total_seconds()
        )
        self._resumed(pause)
