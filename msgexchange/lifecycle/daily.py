"""When a daily job is due: once a day, at a time of the airport's clocks (spec 5.4)."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Daily:
    """Every day at ``at`` in ``timezone``, however often the process restarts."""

    at: time
    timezone: ZoneInfo

    def newest_due(self, now: datetime) -> date:
        """The newest day whose time has come; a job that last ran for an earlier one is due.

        Missed days are caught up by the run for the newest: it finds all that they left.
        """
        today = now.astimezone(self.timezone).date()
        return today if self.due_at(today) <= now else today - ONE_DAY

    def due_at(self, day: date) -> datetime:
        """The moment of that day, in UTC.

        Where the clocks skip the time, the moment they would have shown it; where it comes twice,
        the first.
        """
        return datetime.combine(day, self.at, self.timezone).astimezone(UTC)

    def until_next(self, now: datetime) -> timedelta:
        """How long until a run for another day is due."""
        return self.due_at(self.newest_due(now) + ONE_DAY) - now
