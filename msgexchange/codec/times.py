"""The time forms a message may carry (spec 1.1)."""

import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

# Own table: strptime's month names follow the process's locale.
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"), 1
    )
}
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?", re.ASCII)
_SHORT = re.compile(r"(\d\d)([A-Za-z]{3})(\d\d)(\d\d)(\d\d)", re.ASCII)
# A time of day is required: a bare date does not say when.
_ISO = re.compile(r"\d{4}-?(\d\d-?\d\d|W\d\d-?\d)[T ]\d\d.*", re.ASCII)
_ISO_SECONDS = re.compile(r"[T ]\d\d:?\d\d:?\d\d", re.ASCII)
_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = re.compile(r"(\d{4})(\d\d)(\d\d)", re.ASCII)


@lru_cache(maxsize=4096)
def read_time(text: str, zone: ZoneInfo) -> datetime | None:
    """Naive airport-local time, None if unreadable.

    Forms: ``yyyyMMddHHmmss``, ``yyyyMMddHHmm``, ``DDMMMyyHHmm`` (English month, yy = 20yy), ISO
    8601; one that names its own zone is moved into ``zone``. Cached: a plan repeats the same
    minutes thousands of times.
    """
    try:
        return _read(text, zone)
    except (ValueError, OverflowError):
        return None


def unit_of(text: str) -> timedelta:
    """How exact a readable time is: a second, or a minute where its form knows no seconds."""
    if match := _COMPACT.fullmatch(text):
        return _SECOND if match[6] else _MINUTE
    if _SHORT.fullmatch(text):
        return _MINUTE
    return _SECOND if _ISO_SECONDS.search(text) else _MINUTE


def read_day(text: str) -> date | None:
    """The day of ``yyyyMMdd``, None if it is none."""
    match = _DAY.fullmatch(text)
    if match is None:
        return None
    try:
        return date(*map(int, match.groups()))
    except ValueError:
        return None


def _read(text: str, zone: ZoneInfo) -> datetime | None:
    if match := _SHORT.fullmatch(text):
        day, month, year, hour, minute = match.groups()
        number = _MONTHS.get(month.upper(), 0)
        return datetime(2000 + int(year), number, int(day), int(hour), int(minute))  # noqa: DTZ001
    if match := _COMPACT.fullmatch(text):
        years, months, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return datetime(years, months, days, hours, minutes, seconds)  # noqa: DTZ001
    if _ISO.fullmatch(text):
        moment = datetime.fromisoformat(text)
        return moment.astimezone(zone).replace(tzinfo=None) if moment.tzinfo else moment
    return None
