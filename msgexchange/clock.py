"""Time as the shell sees it; the only module that may read a clock or sleep."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What a step may know of time."""

    def now(self) -> datetime:
        """Aware UTC; what durable stamps carry."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump; for waits and timeouts."""
        ...


class SystemClock:
    """The clock of the host it runs on."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class AnchoredClock:
    """Database time, read now and then and carried on by the monotonic clock (spec 6.1, Time).

    A jump of this host's wall clock therefore moves no deadline and no lease.
    """

    def __init__(
        self, database_now: datetime, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        moment = database_now.astimezone(UTC)
        self._anchor = (moment, monotonic(), moment)

    def now(self) -> datetime:
        moment, anchored_at_s, floor = self._anchor
        return max(moment + timedelta(seconds=self._monotonic() - anchored_at_s), floor)

    def at(self, monotonic_s: float) -> datetime:
        """What the last reading makes of that moment of the monotonic clock."""
        moment, anchored_at_s, _ = self._anchor
        return moment + timedelta(seconds=monotonic_s - anchored_at_s)

    def anchor(self, database_now: datetime, at_s: float, *, jump: bool = False) -> None:
        """From now on carry on from this reading, taken at ``at_s``; for one thread alone.

        A clock that was fast stands still until time has caught up, unless this is a ``jump``.
        """
        moment = database_now.astimezone(UTC)
        self._anchor = (moment, at_s, moment if jump else self.now())

    def monotonic(self) -> float:
        return self._monotonic()
