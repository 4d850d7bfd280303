"""The day's plan, an old copy of it that comes late, and ad hoc flights (spec 2.6)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from msgexchange.demo import airport
from msgexchange.demo.departures import Departure
from msgexchange.demo.drafts import Draft, skipped
from msgexchange.demo.sis import element, item_time, leaf

STALE_FLIGHTS = 3
_AD_HOC_BEFORE = timedelta(hours=6)


def plan(departures: Sequence[Departure], at: datetime) -> Draft:
    """DNLD: every flight of the day."""
    return _schd("DNLD", departures, at)


def stale_plan(departures: Sequence[Departure], at: datetime, *, older: timedelta) -> Draft:
    """Some of the plan again under a new number and with an older DTTM: must change nothing."""
    return replace(
        skipped(_schd("DNLD", departures[:STALE_FLIGHTS], at), "stale-plan"), dated_back=older
    )


def ad_hoc(departure: Departure) -> Draft:
    """ADFT: a flight the plan did not know."""
    return _schd("ADFT", [departure], departure.scheduled - _AD_HOC_BEFORE)


def route(departure: Departure, leaves: datetime, arrives: datetime) -> str:
    """The two points of ROUT; each time is local to its point."""
    return element(
        "ROUT", leaf("STOP", departure.origin), leaf("DPTM", item_time(leaves)), RONO="1"
    ) + element(
        "ROUT", leaf("STOP", departure.destination), leaf("ARTM", item_time(arrives)), RONO="2"
    )


def _schd(styp: str, departures: Sequence[Departure], at: datetime) -> Draft:
    flights = [_planned(departure) for departure in departures]
    body = element("SCHD", leaf("RCNT", str(len(flights))), *flights)
    return Draft(at=at, type_="SCHD", styp=styp, body=body, flights=len(flights))


def _planned(departure: Departure) -> str:
    scheduled = departure.scheduled
    # Both ways to know the operation day: FDAY, and the date of SCTM where FDAY is left out.
    day = [leaf("FDAY", f"{scheduled:%Y%m%d}")] if airport.one_in(departure, "fday", 2) else []
    return element(
        "FLGT",
        leaf("FLID", departure.flid),
        *day,
        leaf("FLNO", departure.flight),
        leaf("ALCD", departure.carrier),
        leaf("MVTP", "D"),
        leaf("SCTM", item_time(scheduled)),
        leaf("FLTY", "DOM"),
        leaf("TERM", airport.terminal(departure)),
        leaf("ACTP", airport.aircraft_type(departure)),
        leaf("STAT", "SCH"),
        route(departure, scheduled, departure.due),
    )
