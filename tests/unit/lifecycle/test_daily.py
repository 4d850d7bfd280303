"""When a daily job is due."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgexchange.lifecycle.daily import Daily

SHANGHAI = Daily(time(3, 30), ZoneInfo("Asia/Shanghai"))
BERLIN = ZoneInfo("Europe/Berlin")


def utc(day: int, hour: int, minute: int = 0, month: int = 9) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def test_a_job_is_due_at_its_time_by_the_airports_clocks() -> None:
    assert SHANGHAI.due_at(date(2026, 9, 3)) == utc(2, 19, 30)
    assert SHANGHAI.newest_due(utc(2, 19, 29)) == date(2026, 9, 2)
    assert SHANGHAI.newest_due(utc(2, 19, 30)) == date(2026, 9, 3)


def test_the_wait_ends_when_the_next_day_is_due() -> None:
    assert SHANGHAI.until_next(utc(2, 19, 30)) == timedelta(days=1)
    assert SHANGHAI.until_next(utc(2, 19, 29)) == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("day", "due"),
    [
        (date(2026, 3, 28), utc(28, 1, 30, month=3)),
        # The clocks go from 02:00 to 03:00: half past two is half past three.
        (date(2026, 3, 29), utc(29, 1, 30, month=3)),
        (date(2026, 3, 30), utc(30, 0, 30, month=3)),
        # They go back from 03:00 to 02:00: half past two comes twice, the first one counts.
        (date(2026, 10, 25), utc(25, 0, 30, month=10)),
        (date(2026, 10, 26), utc(26, 1, 30, month=10)),
    ],
)
def test_a_day_on_which_the_clocks_change_has_one_run(day: date, due: datetime) -> None:
    half_past_two = Daily(time(2, 30), BERLIN)
    assert half_past_two.due_at(day) == due
    assert half_past_two.newest_due(due) == day
    assert half_past_two.newest_due(due - timedelta(minutes=1)) == day - timedelta(days=1)


@given(
    at=st.times().map(lambda t: t.replace(tzinfo=None)),
    now=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)).map(
        lambda moment: moment.replace(tzinfo=UTC)
    ),
)
def test_each_moment_lies_between_the_newest_due_day_and_the_next(at: time, now: datetime) -> None:
    daily = Daily(at, BERLIN)
    day = daily.newest_due(now)
    assert daily.due_at(day) <= now < daily.due_at(day + timedelta(days=1))
    assert daily.until_next(now) > timedelta(0)
