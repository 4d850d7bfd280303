"""A dependency that is down pauses whoever needs it, and charges nobody (spec 3.3)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from msgexchange.lifecycle.backoff import Backoff

PROBE_BACKOFF = Backoff(cap=timedelta(seconds=16))
"""The spec's 1-16 s between tries of a dependency that is down."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """Open since ``since``, after ``failures`` failed tries in a row."""

    dependency: str
    since: datetime
    failures: int
    reason: str

    @property
    def pause(self) -> timedelta:
        """How long to wait before the next try."""
        return PROBE_BACKOFF.after(self.failures)


def tripped(
    open_breaker: Breaker | None, *, dependency: str, reason: str, now: datetime
) -> Breaker:
    """The breaker after one more failed try; a change of dependency starts anew."""
    if open_breaker is None or open_breaker.dependency != dependency:
        return Breaker(dependency, now, 1, reason)
    return Breaker(dependency, open_breaker.since, open_breaker.failures + 1, reason)
