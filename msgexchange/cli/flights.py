"""``flights`` and ``flight``: states, what changed them, and how they were."""

from datetime import date, datetime

import click

from msgexchange.cli import show
from msgexchange.cli.context import Failure, Session
from msgexchange.cli.describing import catalogue_in_force
from msgexchange.cli.flight_then import TimeOrMessage, show_flight_then
from msgexchange.codec.names import codes_of
from msgexchange.flight.events import schd_value
from msgexchange.flight.past import past_lives
from msgexchange.flight.state import FlightStatus
from msgexchange.ids import Flid, MailboxId


@click.command(epilog="Example: run.py flights --day 2013-11-27 --limit 20")
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), help="Operation day.")
@click.option(
    "--status", "state", type=click.Choice(["ACTIVE", "DELETED", "all"]), default="ACTIVE"
)
@click.option("--after", help="Continue after this FLID.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@show.JSON
@click.pass_obj
def flights(
    session: Session,
    *,
    day: datetime | None,
    state: str,
    after: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Flights in FLID order."""
    settings = session.settings()
    timezone = settings.site.timezone.key
    wanted_day: date | None = None if day is None else day.date()
    with session.reads() as reads:
        found = reads.flights(
            operation_day=wanted_day,
            status=None if state == "all" else state,
            after=None if after is None else Flid(after),
            limit=limit,
        )
    if as_json:
        show.as_json([schd_value(flight, timezone) for flight in found])
        return
    names = ("FLNO", "SCTM", "ESTM", "ACTM", "STAT", "STND")
    show.table(
        "flights",
        ("FLID", "day", *names, "version", "status"),
        (
            (
                flight.flid,
                flight.operation_day,
                *(flight.content.get(name) for name in names),
                flight.version,
                "" if flight.status is FlightStatus.ACTIVE else flight.status,
            )
            for flight in found
        ),
    )


@click.command(
    epilog="Examples: run.py flight 900123;  run.py flight 900123 --at 2026-09-03T18:00;  "
    "run.py flight 900123 --at 17"
)
@click.argument("flid")
@click.option(
    "--at",
    "moment",
    type=TimeOrMessage(),
    help="As it was at that time (ISO 8601; without a zone it is airport time), or just after the "
    "message of that id.",
)
@show.JSON
@click.pass_obj
def flight(
    session: Session, *, flid: str, moment: datetime | MailboxId | None, as_json: bool
) -> None:
    """One flight: its state, what each of its versions changed, and its past lives."""
    if moment is not None:
        show_flight_then(session, Flid(flid), moment, as_json=as_json)
        return
    settings = session.settings()
    with session.reads() as reads:
        found = reads.flight(Flid(flid))
        changes = reads.changes(Flid(flid))
    lives = past_lives(session.backends.written_lives(settings, Flid(flid)), found)
    if found is None and not lives:
        raise Failure(f"flight {flid} is not known here")
    swept = found is None
    found = found or lives[-1].state
    value = schd_value(found, settings.site.timezone.key)
    codes = codes_of(catalogue_in_force(settings), found.content)
    with session.reads() as reads:
        records = reads.records([code.record for code in codes])
    names = [
        (code.place, code.record[1], name)
        for code in codes
        if (name := code.name(records)) is not None
    ]
    if as_json:
        value["names"] = [
            {"place": place, "code": code, "name": name} for place, code, name in names
        ]
        value["history"] = [
            {"version": c.version, "messageId": c.message_id, "at": c.at, "changes": c.changes}
            for c in changes
        ]
        value["swept"] = swept
        value["pastLives"] = [schd_value(life.state, value["timezone"]) for life in lives]
        show.as_json(value)
        return
    show.pairs(
        f"flight {flid}, version {found.version}, {found.status.value}, "
        f"operation day {found.operation_day}{', from history' if swept else ''}",
        dict(found.content),
    )
    if names:
        show.table("names", ("place", "code", "name"), names)
    show.table(
        "past lives",
        ("operation day", "last version", "last message", "written to history"),
        (
            (
                life.state.operation_day,
                life.state.version,
                life.state.last_message_id,
                life.written_at,
            )
            for life in lives
        ),
    )
    show.table(
        "history",
        ("version", "message", "at", "field", "old", "new"),
        ((c.version, c.message_id, c.at, *change) for c in changes for change in c.changes),
    )
