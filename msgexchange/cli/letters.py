"""``dead`` and ``discard``: messages that need a person."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from msgexchange.cli import show
from msgexchange.cli.choosing import BY, ID, REASON, choice, filters
from msgexchange.cli.context import Failure, Misuse, Session
from msgexchange.cli.redelivering import show_dead_events
from msgexchange.ids import Flid
from msgexchange.pipeline.letters import Listed, NotDone
from msgexchange.web.letters import kind_of, letter_document, next_of

FLIGHTS_SHOWN = 3


@click.command(
    epilog="Examples: run.py dead;  run.py dead --class UNSUPPORTED --since 2026-09-03T06:00;  "
    "run.py dead --skipped --flight 900123;  run.py dead --events"
)
@click.option("--events", is_flag=True, help="Events the broker would not take, not messages.")
@click.option("--discarded", is_flag=True, help="What was discarded, not what waits.")
@filters
@show.JSON
@click.pass_obj
def dead(
    session: Session, /, *, events: bool, discarded: bool, as_json: bool, **options: Any
) -> None:
    """Dead letters: each needs a person. The newest first.

    Say --skipped for messages that were skipped for a reason that may be gone: their flight was
    unknown or deleted, nobody had asked for them, or their plan was an older one.
    """
    if events:
        show_dead_events(session, limit=options["limit"], as_json=as_json)
        return
    wanted = choice(options, discarded=discarded)
    flid = None if wanted.flid is None else Flid(wanted.flid)
    with session.backends.letters(session.settings()) as desk:
        letters = desk.find(wanted.query(session), flid=flid)
        now = desk.now()
    if as_json:
        show.as_json([letter_document(one, now) for one in letters])
        return
    show.table(
        "skipped messages" if wanted.query(session).skipped else "dead letters",
        ("message", "class", "cause", "kind", "sender", "flights", "age", "text", "error", "next"),
        (_row(one, now) for one in letters),
    )


def _row(listed: Listed, now: datetime) -> tuple[object, ...]:
    letter = listed.letter
    more = len(listed.flids) - FLIGHTS_SHOWN
    named = ", ".join(listed.flids[:FLIGHTS_SHOWN])
    return (
        letter.message_id,
        letter.error_class or letter.state,
        letter.last_cause,
        kind_of(letter.meta),
        letter.meta.sndr,
        f"{named} and {more} more" if more > 0 else named,
        _age(letter.received_at, now),
        "kept" if letter.text_kept else "in the mailbox, if there",
        letter.error,
        next_of(letter),
    )


def _age(since: datetime, now: datetime) -> str:
    minutes = max(int((now - since).total_seconds() // 60), 0)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} d"


@click.command(
    epilog='Examples: run.py discard 17 18 --by jl --reason "sent again as 25";  '
    'run.py discard --class MALFORMED --before 2026-09-01 --by jl --reason "test of the sender"'
)
@click.argument("ids", type=ID, nargs=-1)
@filters
@BY
@REASON
@show.JSON
@click.pass_obj
def discard(
    session: Session,
    /,
    *,
    ids: tuple[int, ...],
    by: str,
    reason: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Close dead letters for good: all that are named or match, or none.

    They stay DEAD and are found with `run.py dead --discarded`; they cannot be replayed any more,
    their kept texts are dropped, and a corrected message may carry their identity.
    """
    wanted = choice(options, ids=ids)
    if wanted.skipped or wanted.query(session).skip_code:
        raise Misuse("only dead letters are discarded; a skipped message is closed already")
    with session.backends.letters(session.settings()) as desk:
        try:
            closed = desk.discard(wanted.chosen(session, desk), by=by, reason=reason)
        except NotDone as refusal:
            raise Failure(str(refusal)) from refusal
    if as_json:
        answer: Mapping[str, object] = {"discarded": closed}
        show.as_json(answer)
        return
    click.echo(f"{len(closed)} dead letters are discarded: {', '.join(map(str, closed))}")
