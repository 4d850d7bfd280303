"""Rows that are kept for a time, and then no longer (spec 5.4)."""

from datetime import datetime, timedelta

from msgexchange.ids import Fence
from msgexchange.pipeline.daily import Done, Slices
from msgexchange.ports import Kept, RetentionStore

ROWS_MAX = 1_000
"""Looked at in one slice."""


class Retention:
    """A ``Duty`` for one kind of rows."""

    def __init__(
        self,
        kept: Kept,
        *,
        keep_for: timedelta,
        store: RetentionStore,
        fence: Fence,
        rows_max: int = ROWS_MAX,
    ) -> None:
        self._kept = kept
        self._keep_for = keep_for
        self._store = store
        self._fence = fence
        self._rows_max = rows_max

    def slices(self, *, now: datetime) -> Slices:
        """From the oldest."""
        older_than = now - self._keep_for
        dropped = after = 0
        while True:
            slice_ = self._store.drop(
                self._fence, self._kept, older_than=older_than, after=after, limit=self._rows_max
            )
            dropped += slice_.done
            if slice_.reached is None:
                return Done(f"{dropped} rows deleted", kept_since=older_than)
            after = slice_.reached
            yield
