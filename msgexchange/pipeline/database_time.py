"""Our clock follows the database's; a jump of that one is noticed, told and made good (6.1)."""

from collections.abc import Callable
from datetime import timedelta

from msgexchange.clock import AnchoredClock
from msgexchange.ids import Fence
from msgexchange.pipeline.step import PauseS
from msgexchange.ports import Fenced, LeaderStore, RetryNow, Telemetry, Unavailable

FOLLOW_EVERY_S = 5.0
ROUND_TRIP_S_MAX = 0.5
"""A reading that took longer says too little about the moment it was taken at."""
JUMP = timedelta(seconds=2)


class DatabaseTime:
    """Anchors the clock anew at each step.

    ``fence`` is the one this process leads with, None for a standby: only the leader shifts
    deadlines. ``shifted`` is called when who waits for one should look at the time again.
    """

    def __init__(
        self,
        *,
        store: LeaderStore,
        clock: AnchoredClock,
        telemetry: Telemetry,
        fence: Callable[[], Fence | None],
        shifted: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._fence = fence
        self._shifted = shifted
        self._owed = timedelta()

    def step(self) -> PauseS:
        asked_at_s = self._clock.monotonic()
        try:
            database_now = self._store.database_now()
        except (Unavailable, RetryNow):
            return FOLLOW_EVERY_S
        answered_at_s = self._clock.monotonic()
        if answered_at_s - asked_at_s > ROUND_TRIP_S_MAX:
            return FOLLOW_EVERY_S
        at_s = (asked_at_s + answered_at_s) / 2
        jump = database_now - self._clock.at(at_s)
        if abs(jump) <= JUMP:
            self._clock.anchor(database_now, at_s)
            self._pay(self._owed)
            return FOLLOW_EVERY_S
        text = f"by {jump.total_seconds():.1f} s against this host's monotonic clock"
        self._telemetry.alert("database-clock-jump", text)
        # Nothing may seem due in between: forwards the deadlines go first, backwards the clock.
        if jump < timedelta():
            self._clock.anchor(database_now, at_s, jump=True)
            self._owed += jump
            self._pay(self._owed)
        elif self._shift(jump):
            self._clock.anchor(database_now, at_s, jump=True)
            self._shifted()
        return FOLLOW_EVERY_S

    def _pay(self, owed: timedelta) -> None:
        """What could not be shifted when the clock went back is shifted later."""
        if owed and self._shift(owed):
            self._owed = timedelta()
            self._shifted()

    def _shift(self, jump: timedelta) -> bool:
        """False when that must be tried again."""
        fence = self._fence()
        if fence is None:
            return True
        try:
            rows = self._store.shift_deadlines(fence, jump)
        except Fenced:
            return True
        except (Unavailable, RetryNow) as failure:
            self._telemetry.log("deadlines.not-shifted", reason=str(failure))
            return False
        self._telemetry.log("deadlines.shifted", rows=rows, by_s=jump.total_seconds())
        return True
