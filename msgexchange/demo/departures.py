"""The published day: one row of the csv is one departure."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from importlib import resources

from msgexchange.ids import Flid

DAY = date(2013, 11, 27)
TIMEZONE = "America/New_York"
"""Where the three airports are; every time of the feed is local to it unless it says otherwise."""

_FILE = "nyc-departures-2013-11-27.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """One departure; times are naive and airport-local, ``due``/``arrived`` at the destination.

    ``left`` None = cancelled. ``flid`` is ours: the day and the flight's place in schedule order.
    """

    flid: Flid
    carrier: str
    number: str
    tail: str | None
    origin: str
    destination: str
    scheduled: datetime
    due: datetime
    left: datetime | None
    arrived: datetime | None
    air_time: timedelta | None
    distance_mi: int

    @property
    def flight(self) -> str:
        """FLNO: airline code and number."""
        return f"{self.carrier}{self.number}"

    @property
    def delay_min(self) -> int:
        """Minutes behind schedule, negative if early; 0 for a cancelled flight."""
        late = timedelta() if self.left is None else self.left - self.scheduled
        return int(late.total_seconds()) // 60

    @property
    def diverted(self) -> bool:
        """Left, came down somewhere, but never flew its route."""
        return self.left is not None and self.air_time is None


def published_day() -> tuple[Departure, ...]:
    """The day that ships with the package, in schedule order."""
    text = resources.files("msgexchange.demo").joinpath(_FILE).read_text(encoding="utf-8")
    return read_departures(text.splitlines(), DAY)


def read_departures(lines: Iterable[str], day: date) -> tuple[Departure, ...]:
    """Every row (the first line names the columns) in schedule order.

    ``ValueError`` names the line that cannot be read.
    """
    reader = csv.DictReader(lines)
    read = []
    for row in reader:
        try:
            read.append(_departure(row, day))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"departures, line {reader.line_num}: {error!r}") from error
    read.sort(key=lambda departure: (departure.scheduled, departure.flight, departure.origin))
    return tuple(
        replace(departure, flid=Flid(f"NYC{day:%Y%m%d}-{place:04d}"))
        for place, departure in enumerate(read, start=1)
    )


def _departure(row: Mapping[str, str], day: date) -> Departure:
    """The row's flight, not yet numbered."""
    scheduled = datetime.combine(day, time()) + _clock(row["sched_dep_time"])
    # dep_delay, not dep_time, says on which side of midnight a late flight left.
    left = scheduled + timedelta(minutes=int(row["dep_delay"])) if row["dep_time"] else None
    return Departure(
        flid=Flid(""),
        carrier=row["carrier"],
        number=str(int(row["flight"])),
        tail=row["tailnum"] or None,
        origin=row["origin"],
        destination=row["dest"],
        scheduled=scheduled,
        due=_next(scheduled, row["sched_arr_time"]),
        left=left,
        arrived=_next(left, row["arr_time"]) if left and row["arr_time"] else None,
        air_time=timedelta(minutes=int(row["air_time"])) if row["air_time"] else None,
        distance_mi=int(row["distance"]),
    )


def _clock(hhmm: str) -> timedelta:
    """Time since midnight; ``2400`` is a whole day."""
    value = int(hhmm)
    return timedelta(hours=value // 100, minutes=value % 100)


def _next(after: datetime, hhmm: str) -> datetime:
    """The first such clock reading not before ``after``'s: no flight here lands a day earlier."""
    reading = datetime.combine(after.date(), time()) + _clock(hhmm)
    return reading if reading >= after else reading + timedelta(days=1)
