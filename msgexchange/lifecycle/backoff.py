"""How long a failed message or event waits (spec 3.3)."""

from dataclasses import dataclass, field
from datetime import timedelta

from tenacity import RetryCallState, Retrying, wait_exponential


@dataclass(frozen=True, slots=True)
class Backoff:
    """1, 2, 4, 8, 16, ... times ``base``, never above ``cap``."""

    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(seconds=60)
    _strategy: wait_exponential = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        strategy = wait_exponential(
            multiplier=self.base.total_seconds(), max=self.cap.total_seconds()
        )
        object.__setattr__(self, "_strategy", strategy)

    def after(self, failures: int) -> timedelta:
        """The wait after the n-th failure in a row, n from 1."""
        call = RetryCallState(retry_object=Retrying(), fn=None, args=(), kwargs={})
        call.attempt_number = failures
        return timedelta(seconds=self._strategy(call))
