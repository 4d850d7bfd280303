"""Commands that look: status, head, flights, flight, explain."""

from datetime import date, datetime
from typing import Any

import click

from msgexchange.cli import show
from msgexchange.cli.context import Failure, Session
from msgexchange.cli.describing import catalogue_in_force
from msgexchange.cli.process import health_of, show_process
from msgexchange.codec.names import codes_of
from msgexchange.flight.events import Target, schd_value
from msgexchange.flight.past import past_lives
from msgexchange.flight.state import FlightStatus
from msgexchange.ids import Flid, MailboxId
from msgexchange.lifecycle.states import InboxEntry
from msgexchange.ports import (
    LeaseView,
    MessageView,
    Reads,
    StoreCounts,
    Unavailable,
)
from msgexchange.web.messages import message_value
from msgexchange.web.story import story_of

ID_MAX = (1 << 63) - 1
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")


@click.command(epilog="Example: run.py status --json")
@JSON
@click.pass_obj
def status(session: Session, *, as_json: bool) -> None:
    """The flow in numbers: watermark, messages, events, gaps, marks; who waits for what.

    What the running process says of itself comes from its health, and is told also while the own
    database is down.
    """
    process = health_of(session.data_dir)
    try:
        with session.reads() as reads:
            counts = reads.counts()
            head_entry = reads.head()
            leadership = reads.leadership()
    except Unavailable:
        if as_json:
            show.as_json({"process": process})
        else:
            show_process(process)
        raise
    if as_json:
        show.as_json(
            {
                **_status_document(counts, head_entry),
                "leadership": _leadership_document(leadership),
                "process": process,
            }
        )
        return
    show_process(process)
    show.pairs(
        "msgexchange",
        {
            "watermark": counts.watermark,
            "head": _head_text(head_entry),
            "flights": counts.flights,
            "intake halted": counts.halted,
            "open gaps": counts.open_gaps,
            "terminal, not marked": counts.unmarked,
            "oldest event waiting since": counts.oldest_pending_event_at,
            "leader": leadership.owner or "nobody",
            "fence": leadership.fence,
            "standbys": ", ".join(one.owner for one in leadership.fresh_standbys()) or "none",
        },
    )
    show.table("messages", ("state", "count"), sorted(counts.messages.items()))
    show.table("dead letters", ("class", "count"), sorted(counts.dead_by_class.items()))
    show.table(
        "events",
        ("target", "state", "count"),
        ((target, state, amount) for (target, state), amount in sorted(counts.events.items())),
    )


def _leadership_document(leadership: LeaseView) -> dict[str, Any]:
    return {
        "owner": leadership.owner,
        "fence": leadership.fence,
        "until": leadership.until,
        "standbys": [
            {"owner": one.owner, "able": one.able, "seenAt": one.seen_at}
            for one in leadership.fresh_standbys()
        ],
    }


def _status_document(counts: StoreCounts, head_entry: InboxEntry | None) -> dict[str, Any]:
    return {
        "watermark": counts.watermark,
        "head": None if head_entry is None else _head_document(head_entry),
        "messages": counts.messages,
        "deadByClass": counts.dead_by_class,
        "events": [
            {"target": target, "state": state, "count": amount}
            for (target, state), amount in sorted(counts.events.items())
        ],
        "flights": counts.flights,
        "halted": counts.halted,
        "openGaps": counts.open_gaps,
        "oldestGapFirstSeen": counts.oldest_gap_first_seen,
        "unmarked": counts.unmarked,
        "oldestPendingEventAt": counts.oldest_pending_event_at,
    }


@click.command(epilog="Example: run.py head")
@JSON
@click.pass_obj
def head(session: Session, *, as_json: bool) -> None:
    """The message everybody waits for, and until when."""
    with session.reads() as reads:
        head_entry = reads.head()
    if as_json:
        show.as_json(None if head_entry is None else _head_document(head_entry))
    else:
        click.echo(_head_text(head_entry))


def _head_document(entry: InboxEntry) -> dict[str, Any]:
    return {
        "id": entry.message_id,
        "state": entry.state,
        "attempts": entry.attempts,
        "nextAttemptAt": entry.next_attempt_at,
        "processingStartedAt": entry.processing_started_at,
        "receivedAt": entry.received_at,
        "textBytes": entry.text_bytes,
    }


def _head_text(entry: InboxEntry | None) -> str:
    if entry is None:
        return "nobody waits"
    text = f"message {entry.message_id} is {entry.state.value}"
    if entry.next_attempt_at is None:
        return f"{text}, due now"
    until = show.cell(entry.next_attempt_at)
    return f"{text} after {entry.attempts} attempts, waiting until {until}"


@click.command(epilog="Example: run.py flights --day 2013-11-27 --limit 20")
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), help="Operation day.")
@click.option(
    "--status", "state", type=click.Choice(["ACTIVE", "DELETED", "all"]), default="ACTIVE"
)
@click.option("--after", help="Continue after this FLID.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@JSON
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


@click.command(epilog="Example: run.py flight 900123")
@click.argument("flid")
@JSON
@click.pass_obj
def flight(session: Session, *, flid: str, as_json: bool) -> None:
    """One flight: its state, what each of its versions changed, and its past lives."""
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


def _message(reads: Reads, what: str) -> MessageView | None:
    """The message of that id, if it is one at all: a mailbox id is a 64-bit number."""
    if not (what.isascii() and what.isdecimal()) or int(what) > ID_MAX:
        return None
    return reads.message(MailboxId(int(what)))


@click.command(epilog="Examples: run.py explain 17;  run.py explain 900123")
@click.argument("what")
@JSON
@click.pass_obj
def explain(session: Session, *, what: str, as_json: bool) -> None:
    """The story of a message (by mailbox id) or of a flight (by FLID), in time order."""
    kafka = session.settings().kafka
    topics = {Target.MSG: kafka.msg_topic, Target.SCHD: kafka.schd_topic}
    with session.reads() as reads:
        message = _message(reads, what)
        known = reads.flight(Flid(what))
        changes = reads.changes(Flid(what)) if known else ()
    if message is None and known is None:
        raise Failure(f"{what} is neither a message nor a flight known here")
    if as_json:
        document: dict[str, Any] = {"message": message and message_value(message, topics)}
        document["flight"] = known and [
            {"version": c.version, "messageId": c.message_id, "at": c.at, "changes": c.changes}
            for c in changes
        ]
        show.as_json(document)
        return
    if message is not None:
        lines = ((line.at, line.what) for line in story_of(message, topics))
        show.table(f"message {what}", ("at", "what"), lines)
    if known is not None:
        show.table(
            f"flight {what}",
            ("version", "at", "message", "field", "old", "new"),
            ((c.version, c.at, c.message_id, *change) for c in changes for change in c.changes),
        )
