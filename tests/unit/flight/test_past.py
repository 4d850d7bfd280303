"""Which flights are past, and what consumers hear of those that leave."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.past import (
    PastFlight,
    SweepPolicy,
    ended,
    ending_events,
    is_past,
    past_lives,
)
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import Flid, MailboxId

NOW = datetime(2026, 9, 10, 2, tzinfo=UTC)
"""10:00 in Shanghai on 10 September."""
POLICY = SweepPolicy(timezone=ZoneInfo("Asia/Shanghai"), terminal_stat=frozenset({"ARR"}))
LONG_AGO, LATELY = NOW - timedelta(hours=24), NOW - timedelta(hours=1)
PAST, WITHIN = date(2026, 9, 6), date(2026, 9, 7)


def flight(day: date | None, **given: Any) -> FlightState:
    defaults: dict[str, Any] = {"status": FlightStatus.ACTIVE, "content": {"STAT": "BRD"}}
    return FlightState(
        flid=Flid("1"),
        operation_day=day,
        version=4,
        last_message_id=MailboxId(17),
        **(defaults | given),
    )


def past(state: FlightState, changed_at: datetime) -> bool:
    return is_past(state, changed_at=changed_at, now=NOW, policy=POLICY)


@pytest.mark.parametrize(
    "over",
    [
        {"status": FlightStatus.DELETED},
        {"content": {"CNCL": "Y"}},
        {"content": {"ACTM": "03SEP261804"}},
        {"content": {"STAT": "ARR"}},
    ],
)
def test_a_flight_that_is_over_goes_once_its_day_is_past(over: dict[str, Any]) -> None:
    assert past(flight(PAST, **over), LATELY)
    assert not past(flight(WITHIN, **over), LONG_AGO)


def test_a_delayed_flight_still_active_past_its_day_stays() -> None:
    assert not past(flight(PAST), LATELY)


def test_a_silent_flight_goes_once_its_day_is_past() -> None:
    assert past(flight(PAST), LONG_AGO)
    assert not past(flight(WITHIN), LONG_AGO)


def test_a_flight_without_a_day_goes_by_silence_alone() -> None:
    assert past(flight(None), LONG_AGO)
    assert not past(flight(None, content={"CNCL": "Y"}), LATELY)


def test_withdrawn_values_end_no_flight() -> None:
    assert not past(flight(PAST, content={"CNCL": "", "ACTM": "", "STAT": ""}), LATELY)


def test_days_are_the_airports() -> None:
    # 23:30 UTC on the 9th is the 10th in Shanghai.
    before_midnight = datetime(2026, 9, 9, 23, 30, tzinfo=UTC)
    assert POLICY.last_day(before_midnight) == PAST


def test_a_flight_nobody_announced_deleted_leaves_with_a_notice_and_a_tombstone() -> None:
    state = flight(PAST)
    notice, tombstone = ending_events(state, "Asia/Shanghai")
    assert (notice.target, notice.type) == (Target.MSG, EventType.NOTICE)
    assert (tombstone.target, tombstone.type) == (Target.SCHD, EventType.TOMBSTONE)
    assert tombstone.value is None
    assert notice.value == {
        "changes": {"cleared": [], "replaced": {}, "set": {}},
        "dttm": None,
        "flid": "1",
        "kind": "FDEL",
        "messageId": 17,
        "operationDay": "2026-09-06",
        "seqn": None,
        "sndr": "msgexchange",
        "stateVersion": 5,
        "timezone": "Asia/Shanghai",
    }
    assert ended(state).version == 5


def test_a_flight_announced_deleted_leaves_without_a_word() -> None:
    state = flight(PAST, status=FlightStatus.DELETED)
    assert list(ending_events(state, "Asia/Shanghai")) == []
    assert ended(state) is state


def test_a_life_is_the_newest_that_was_written_of_its_day() -> None:
    first, again, other = (
        PastFlight(replace(flight(day), version=version), NOW)
        for day, version in ((PAST, 4), (PAST, 6), (WITHIN, 9))
    )
    assert past_lives([first, again, other], None) == [again, other]
    # Written, then not deleted: the flight still stands.
    assert past_lives([first, again, other], replace(flight(WITHIN), version=10)) == [again]
