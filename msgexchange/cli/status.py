"""``status`` and ``head``: the flow in numbers, and who waits for what."""

from typing import Any

import click

from msgexchange.cli import show
from msgexchange.cli.context import Session
from msgexchange.cli.process import health_of, show_process
from msgexchange.lifecycle.states import InboxEntry
from msgexchange.ports import LeaseView, StoreCounts, Unavailable


@click.command(epilog="Example: run.py status --json")
@show.JSON
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
@show.JSON
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
