"""``dead --events`` and ``redeliver``: events the broker would not take."""

from typing import Any

import click

from msgexchange.cli import show
from msgexchange.cli.context import Failure, Session
from msgexchange.ids import EventId
from msgexchange.pipeline.redeliver import NotRedeliverable
from msgexchange.ports import DeadEvent


def show_dead_events(session: Session, *, limit: int, as_json: bool) -> None:
    """Print the dead events that nothing was sent in place of."""
    with session.backends.redelivery(session.settings()) as redelivery:
        found = redelivery.dead_events(limit=limit)
    if as_json:
        show.as_json([_document(event) for event in found])
        return
    show.table(
        "dead events",
        ("event", "target", "type", "flight", "version", "message", "since", "attempts", "error"),
        (
            (
                event.event_id,
                event.target,
                event.type,
                event.flid,
                event.state_version,
                event.message_id,
                event.created_at,
                event.attempts,
                event.error,
            )
            for event in found
        ),
    )


def _document(event: DeadEvent) -> dict[str, Any]:
    return {
        "eventId": event.event_id,
        "target": event.target,
        "type": event.type,
        "flid": event.flid,
        "stateVersion": event.state_version,
        "messageId": event.message_id,
        "createdAt": event.created_at,
        "attempts": event.attempts,
        "error": event.error,
    }


@click.command(epilog='Example: run.py redeliver 4711 --by jl --reason "limit of the topic raised"')
@click.argument("event_id", type=click.IntRange(1))
@click.option("--by", required=True, help="Who does it; goes to the audit.")
@click.option("--reason", required=True, help="Why; goes to the audit.")
@click.pass_obj
def redeliver(session: Session, *, event_id: int, by: str, reason: str) -> None:
    """Send what a dead event said again, as a new event at the end of the line.

    On msg that is the same content, on schd the flight's current state.
    """
    try:
        successor = session.backends.redeliver(
            session.settings(), EventId(event_id), by=by, reason=reason
        )
    except NotRedeliverable as refusal:
        raise Failure(str(refusal)) from refusal
    click.echo(f"event {event_id} goes out again as event {successor}")
