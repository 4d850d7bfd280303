"""``request`` and ``requests``: asking the AODB, and what became of it (spec 5.1)."""

import getpass
from collections.abc import Iterator, Sequence
from datetime import date, datetime

import click

from msgexchange.cli import show
from msgexchange.cli.context import Misuse, Session
from msgexchange.lifecycle.answer import MatchBy
from msgexchange.lifecycle.request import (
    PlanWanted,
    ReferenceWanted,
    Request,
    RequestState,
    Wanted,
)
from msgexchange.pipeline.asking import NotAskable, shown
from msgexchange.web.requests import request_document

DAY = click.DateTime(["%Y-%m-%d"])
BY = click.option("--by", help="Who asks; the user of this shell without it.")
REASON = click.option("--reason", help="Why; goes to the audit.")


@click.group(
    epilog="Examples: run.py request plan --day 2026-09-03;  run.py request reference --type ARPT"
)
def request() -> None:
    """Ask the AODB to send a plan or reference data again.

    An open request of the same kind is given up for the new one. See `run.py requests`.
    """


@request.command("plan", epilog="Example: run.py request plan --day 2026-09-03 --to 2026-09-05")
@click.option("--day", type=DAY, required=True, help="Operation day, yyyy-MM-dd.")
@click.option("--to", "last_day", type=DAY, help="Last day of several; --day alone without it.")
@BY
@REASON
@show.JSON
@click.pass_obj
def plan(
    session: Session,
    *,
    day: datetime,
    last_day: datetime | None,
    by: str | None,
    reason: str | None,
    as_json: bool,
) -> None:
    """Ask for the flight plan of a day, or of several."""
    try:
        wanted = PlanWanted(day.date(), (last_day or day).date())
    except ValueError as fault:
        raise Misuse(str(fault)) from fault
    _ask(session, wanted, by=by, reason=reason, as_json=as_json)


@request.command("reference", epilog="Example: run.py request reference --type ARPT")
@click.option("--type", "type_", required=True, help="A reference type of the catalogue.")
@BY
@REASON
@show.JSON
@click.pass_obj
def reference(
    session: Session, *, type_: str, by: str | None, reason: str | None, as_json: bool
) -> None:
    """Ask for all reference data of a type."""
    _ask(session, ReferenceWanted(type_), by=by, reason=reason, as_json=as_json)


@click.command(epilog="Examples: run.py requests;  run.py requests --all --json")
@click.option("--all", "every", is_flag=True, help="Closed requests as well.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@show.JSON
@click.pass_obj
def requests(session: Session, *, every: bool, limit: int, as_json: bool) -> None:
    """Open requests to the AODB, newest first; closed ones and why they were closed with --all."""
    found = session.backends.requests(session.settings(), every=every, limit=limit)
    if as_json:
        show.as_json([request_document(one) for one in found])
        return
    show.table(
        "requests" if every else "open requests",
        ("request", "asks for", "state", "story"),
        (_row(one) for one in found),
    )


def _ask(
    session: Session, wanted: Wanted, *, by: str | None, reason: str | None, as_json: bool
) -> None:
    try:
        asked = session.backends.ask(
            session.settings(), wanted, by=by or getpass.getuser(), reason=reason
        )
    except NotAskable as refusal:
        raise Misuse(str(refusal)) from refusal
    if as_json:
        show.as_json(request_document(asked))
        return
    click.echo(f"request {asked.request_id}: {shown(wanted)}, SEQN {asked.seqn}")


def _row(request: Request) -> Sequence[object]:
    story = "\n".join(_story(request))
    return request.request_id, shown(request.wanted), request.state, story


def _story(request: Request) -> Iterator[str]:
    asked = f"asked {_second(request.created_at)} by {request.requested_by}"
    yield f"{asked}, SEQN {request.seqn}"
    if request.sent_at is not None:
        yield f"sent {_second(request.sent_at)} as row {request.outbound_id}"
    elif request.send_started_at is not None:
        yield f"sending since {_second(request.send_started_at)}"
    why = _why(request)
    if request.finished_at is not None:
        yield f"closed {_second(request.finished_at)}: {why}"
    elif why is not None:
        yield why


def _second(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _why(request: Request) -> str | None:
    if request.answer_message_id is None:
        return request.error
    by = request.matched_by
    how = f"{by} (approximate)" if by == MatchBy.KIND.value else by
    told = f"message {request.answer_message_id} answers, matched by {how}"
    missing: Sequence[date] = sorted(request.wanted.days - request.days_done)
    if request.state is not RequestState.DONE and missing:
        told += f"; without {', '.join(map(str, missing))}"
    return f"{request.error}; {told}" if request.error else told
