"""The published day as values."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from msgexchange.demo.departures import DAY, Departure, published_day, read_departures

HEADER = (
    "carrier,flight,tailnum,origin,dest,sched_dep_time,dep_time,dep_delay,sched_arr_time,"
    "arr_time,arr_delay,air_time,distance"
)


def one(row: str) -> Departure:
    (departure,) = read_departures([HEADER, row], DAY)
    return departure


def test_the_published_day_has_every_row_of_the_file() -> None:
    day = published_day()
    assert len(day) == 1014
    assert sum(departure.left is None for departure in day) == 35
    assert Counter(departure.origin for departure in day) == {"EWR": 367, "LGA": 330, "JFK": 317}
    assert [departure.flight for departure in day if departure.diverted] == ["UA303", "UA1581"]


def test_flights_stand_in_schedule_order_and_are_numbered_in_it() -> None:
    day = published_day()
    assert [departure.scheduled for departure in day] == sorted(d.scheduled for d in day)
    assert [departure.flid for departure in day[:2]] == ["NYC20131127-0001", "NYC20131127-0002"]
    assert len({departure.flid for departure in day}) == len(day)


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = [
        "US,1895,N198UW,EWR,CLT,500,505,5,651,703,12,98,529",
        "UA,1096,N66803,EWR,IAH,515,514,-1,808,743,-25,193,1400",
    ]
    there = read_departures([HEADER, *rows], DAY)
    assert read_departures([HEADER, *reversed(rows)], DAY) == there


def test_a_flight_that_leaves_after_midnight_leaves_on_the_next_day() -> None:
    late = one("EV,5769,N833AS,LGA,IAD,1930,28,298,2049,129,280,41,229")
    assert late.scheduled == datetime(2013, 11, 27, 19, 30)
    assert late.left == datetime(2013, 11, 28, 0, 28)
    assert late.arrived == datetime(2013, 11, 28, 1, 29)
    assert late.delay_min == 298


def test_2400_is_the_midnight_that_ends_the_day() -> None:
    departure = one("B6,727,N587JB,JFK,BQN,2359,2400,1,437,446,9,198,1576")
    assert departure.left == datetime(2013, 11, 28)
    assert departure.due == datetime(2013, 11, 28, 4, 37)


def test_an_early_departure_has_a_negative_delay() -> None:
    early = one("UA,1096,N66803,EWR,IAH,515,514,-1,808,743,-25,193,1400")
    assert early.delay_min == -1
    assert early.left == early.scheduled - timedelta(minutes=1)


def test_no_departure_time_is_a_cancelled_flight_and_no_tail_is_none() -> None:
    cancelled = one("US,2144,,LGA,BOS,1100,,,1210,,,,184")
    assert cancelled.left is None
    assert cancelled.tail is None
    assert not cancelled.diverted
    assert cancelled.delay_min == 0


@pytest.mark.parametrize(
    "row",
    [
        "US,x,,LGA,BOS,1100,,,1210,,,,184",
        "US,2144,,LGA,BOS,,,,1210,,,,184",
        "US,2144",
    ],
)
def test_a_row_that_cannot_be_read_is_named_by_its_line(row: str) -> None:
    good = "US,1895,N198UW,EWR,CLT,500,505,5,651,703,12,98,529"
    with pytest.raises(ValueError, match="line 3"):
        read_departures([HEADER, good, row], DAY)


def test_a_row_with_an_unreadable_delay_is_named_by_its_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        one("US,1895,N198UW,EWR,CLT,500,505,late,651,703,12,98,529")
