"""A clock that stands still until a test moves it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass
class ManualClock:
    seconds: float = 0.0

    def now(self) -> datetime:
        return datetime(2026, 9, 3, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds
