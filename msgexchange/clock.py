"""Time as the shell sees it; the only module that may read a clock or sleep."""

import time
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
    """Database time, read once and carried on by the monotonic clock (spec 6.1, Time).

    A jump of this host's wall clock therefore moves no deadline and no lease.
    """

    def __init__(self, database_now: datetime) -> None:
        self._anchor = database_now.astimezone(UTC)
        self._anchored_at_s = time.monotonic()

    def now(self) -> datetime:
        return self._anchor + timedelta(seconds=time.monotonic() - self._anchored_at_s)

    def monotonic(self) -> float:
        return time.monotonic()
