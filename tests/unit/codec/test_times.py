"""The time forms of a message."""

import locale
from collections.abc import Iterator
from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from msgexchange.codec.times import read_day, read_time

SHANGHAI = ZoneInfo("Asia/Shanghai")
MOMENT = datetime(2026, 9, 3, 18, 4)


@pytest.mark.parametrize(
    "text",
    [
        "20260903180400",
        "202609031804",
        "03SEP261804",
        "03Sep261804",
        "2026-09-03T18:04",
        "2026-09-03T18:04:00",
        "2026-09-03 18:04:00",
        "20260903T180400",
        "2026-09-03T18:04:00.000",
        "2026-W36-4T18:04",
        "2026-09-03T10:04:00Z",
        "2026-09-03T10:04:00+00:00",
        "2026-09-03T12:04:00+02:00",
        "2026-09-03T18:04:00+0800",
    ],
)
def test_each_form_is_airport_local(text: str) -> None:
    assert read_time(text, SHANGHAI) == MOMENT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0000",
        "29FEB271200",
        "31APR261200",
        "00SEP261200",
        "03SEPT261200",
        "03XYZ261200",
        "03SEP262460",
        "20260230120000",
        "202609032460",
        "00000903183000",
        "2026090318300",
        "20260903",
        "2026-09-03",
        "2026-09-03x18:04",
        "2026-13-03T18:04",
        "\N{FULLWIDTH DIGIT TWO}02609031804",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        "03SEP261804 ",
        "soon",
    ],
)
def test_anything_else_is_unreadable(text: str) -> None:
    assert read_time(text, SHANGHAI) is None


def test_a_leap_day_is_read_where_there_is_one() -> None:
    assert read_time("29FEB281200", SHANGHAI) == datetime(2028, 2, 29, 12)


def test_a_zone_with_summer_time_moves_by_its_rule() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert read_time("2026-07-01T12:00:00Z", berlin) == datetime(2026, 7, 1, 14)
    assert read_time("2026-01-01T12:00:00Z", berlin) == datetime(2026, 1, 1, 13)


@pytest.fixture
def other_locale() -> Iterator[None]:
    before = locale.setlocale(locale.LC_TIME)
    for name in ("zh_CN.UTF-8", "de_DE.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_TIME, name)
        except locale.Error:
            continue
        break
    yield
    locale.setlocale(locale.LC_TIME, before)


@pytest.mark.usefixtures("other_locale")
@pytest.mark.parametrize(
    ("month", "number"),
    list(
        zip(
            "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(),  # noqa: SIM905
            range(1, 13),
            strict=True,
        )
    ),
)
def test_months_are_english_in_any_locale(month: str, number: int) -> None:
    assert read_time(f"01{month}260000", SHANGHAI) == datetime(2026, number, 1)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("20260903", date(2026, 9, 3)),
        ("20280229", date(2028, 2, 29)),
        ("20270229", None),
        ("2026-09-03", None),
        ("03SEP26", None),
        ("", None),
        ("202609031", None),
    ],
)
def test_a_day_has_one_form(text: str, day: date | None) -> None:
    assert read_day(text) == day
