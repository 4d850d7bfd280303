"""The mailbox's clock as scans see it: does it go on evenly (spec 3.2)?"""

from datetime import datetime, timedelta

from msgexchange.clock import Clock

JUMP_MIN = timedelta(seconds=2)
"""A difference to our monotonic clock that is more than slow answers and drift."""


class MailboxTime:
    """Compares what the database says with our monotonic clock from one scan to the next."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: datetime | None = None
        self._told_from_s = 0.0
        self._told_to_s = 0.0

    def now(self) -> datetime | None:
        """Database time as it should be by now; None before the first scan."""
        if self._told is None:
            return None
        return self._told + timedelta(seconds=self._clock.monotonic() - self._told_to_s)

    def jump(self, told: datetime, *, asked_at_s: float) -> timedelta | None:
        """By how much the clock jumped since the scan before, None if it did not.

        ``told`` is what the statement sent at ``asked_at_s`` has just answered.
        """
        now_s = self._clock.monotonic()
        jump = None
        if self._told is not None:
            went = told - self._told
            least = timedelta(seconds=asked_at_s - self._told_to_s)
            most = timedelta(seconds=now_s - self._told_from_s)
            if went < least - JUMP_MIN:
                jump = went - least
            elif went > most + JUMP_MIN:
                jump = went - most
        self._told, self._told_from_s, self._told_to_s = told, asked_at_s, now_s
        return jump
