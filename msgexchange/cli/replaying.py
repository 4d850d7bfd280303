"""``replay``: see what messages would do, then have them replayed."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from msgexchange.cli import show
from msgexchange.cli.choosing import BY, ID, REASON, choice, filters
from msgexchange.cli.context import Failure, Misuse, Session
from msgexchange.pipeline.letters import NotDone
from msgexchange.pipeline.prediction import Prediction
from msgexchange.pipeline.replaying import Preflight, ReplayDesk
from msgexchange.ports import ReplayOrder
from msgexchange.web.replays import is_done, order_document, preflight_document

CHANGES_SHOWN = 20
LOOK_EVERY_S = 0.2


@click.group()
def replay() -> None:
    """Dead and skipped messages: see what a replay would do, then order it.

    The leader carries an order out whole, in the order of message ids, if everything still is as
    it was predicted; else it refuses the order whole and says what differs.
    """


@replay.command(
    epilog="Examples: run.py replay plan 17 18;  run.py replay plan --class UNSUPPORTED;  "
    "run.py replay plan --skipped --flight 900123 --save token.txt"
)
@click.argument("ids", type=ID, nargs=-1)
@filters
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the token here."
)
@show.JSON
@click.pass_obj
def plan(
    session: Session,
    /,
    *,
    ids: tuple[int, ...],
    save: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """What each message would do to the state of now: exact, without lock or write."""
    wanted = choice(options, ids=ids)
    settings = session.settings()
    with session.backends.letters(settings) as letters:
        chosen = wanted.chosen(session, letters)
    with session.backends.replays(settings) as desk:
        try:
            seen = desk.plan(chosen)
        except NotDone as refusal:
            raise Failure(str(refusal)) from refusal
    if save is not None and seen.token is not None:
        save.write_text(seen.token + "\n", encoding="ascii")
    if as_json:
        show.as_json(preflight_document(seen))
        return
    _show(seen, save)


@replay.command(
    epilog='Examples: run.py replay run --token r1.eJw... --by jl --reason "catalogue mended";  '
    'run.py replay run --token-file token.txt --by jl --reason "..." --allow-regression'
)
@click.option("--token", help="What `run.py replay plan` printed.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Or the file it was saved to.",
)
@BY
@REASON
@click.option(
    "--allow-regression",
    is_flag=True,
    help="Fields may go back to what an older message said.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    default=30,
    show_default=True,
    help="Seconds to wait for the leader; 0 writes the order and goes.",
)
@show.JSON
@click.pass_obj
def run(
    session: Session,
    *,
    token: str | None,
    token_file: Path | None,
    by: str,
    reason: str,
    allow_regression: bool,
    wait: float,
    as_json: bool,
) -> None:
    """Order what was planned, and wait for the leader to carry it out.

    Exit status 0: carried out. 1: refused, or nobody has carried it out yet.
    """
    if (token is None) == (token_file is None):
        raise Misuse("give --token or --token-file")
    given = token if token_file is None else token_file.read_text(encoding="utf-8")
    assert given is not None
    with session.backends.replays(session.settings()) as desk:
        try:
            order = desk.order(given, by=by, reason=reason, allow_regression=allow_regression)
        except NotDone as refusal:
            raise Failure(str(refusal)) from refusal
        order = _awaited(desk, order, wait)
    _tell(order, as_json=as_json, waits=wait == 0)


@replay.command(epilog="Examples: run.py replay orders;  run.py replay orders 6f00...")
@click.argument("order_id", required=False)
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True)
@show.JSON
@click.pass_obj
def orders(session: Session, *, order_id: str | None, limit: int, as_json: bool) -> None:
    """Orders and what came of them, the newest first."""
    with session.backends.replays(session.settings()) as desk:
        if order_id is None:
            found: Sequence[ReplayOrder] = desk.orders(limit=limit)
        else:
            one = desk.look(order_id)
            if one is None:
                raise Failure(f"there is no order {order_id}: see `run.py replay orders`")
            found = [one]
    if as_json:
        show.as_json([order_document(order) for order in found])
        return
    show.table(
        "replay orders",
        ("order", "by", "reason", "written", "carried out", "outcome"),
        (
            (
                order.order_id,
                order.by,
                order.reason,
                order.created_at,
                order.finished_at,
                order.outcome or "waits for the leader",
            )
            for order in found
        ),
    )


def _awaited(desk: ReplayDesk, order: ReplayOrder, wait_s: float) -> ReplayOrder:
    for _ in range(math.ceil(wait_s / LOOK_EVERY_S)):
        time.sleep(LOOK_EVERY_S)  # noqa: TID251 - a person waits at a terminal
        order = desk.look(order.order_id) or order
        if order.outcome is not None:
            break
    return order


def _tell(order: ReplayOrder, *, as_json: bool, waits: bool) -> None:
    if as_json:
        show.as_json(order_document(order))
    if order.outcome is None and not waits:
        raise Failure(
            f"order {order.order_id} is written and waits for a leader: is `run.py serve` running "
            f"somewhere? See `run.py replay orders {order.order_id}`"
        )
    if order.outcome is not None and not is_done(order):
        raise Failure(f"order {order.order_id} was {order.outcome}")
    if not as_json:
        click.echo(f"order {order.order_id}: {order.outcome or 'written'}")


def _show(seen: Preflight, save: Path | None) -> None:
    show.table(
        "what a replay would do",
        ("message", "is", "becomes", "changes", "goes back", "newer messages", "events"),
        (
            (
                one.message_id,
                one.was,
                one.outcome,
                len(one.changes),
                len(one.backwards),
                ", ".join(_newer(one)),
                len(one.events),
            )
            for one in seen.predictions
        ),
    )
    changes = [(one, change) for one in seen.predictions for change in one.changes]
    show.table(
        "changes",
        ("message", "of", "field", "old", "new", "goes back behind"),
        (
            (
                one.message_id,
                change.about,
                change.field,
                change.old if not isinstance(change.old, list) else tuple(change.old),
                change.new if not isinstance(change.new, list) else tuple(change.new),
                None if change.backwards is None else change.backwards.message_id,
            )
            for one, change in _first(changes)
        ),
    )
    if len(changes) > len(_first(changes)):
        click.echo(f"and {len(changes) - len(_first(changes))} more changes (--json)")
    if seen.token is None:
        raise Failure("none of these messages can be replayed")
    if save is not None:
        click.echo(f"the token is in {save}")
    else:
        click.echo(f"token: {seen.token}")
    if any(one.backwards for one in seen.predictions):
        click.echo("fields would go back: `run.py replay run` wants --allow-regression")


def _first(changes: Sequence[Any]) -> Sequence[Any]:
    """Those that go back first: they are what must be seen."""
    ordered = sorted(changes, key=lambda one: one[1].backwards is None)
    return ordered[:CHANGES_SHOWN]


def _newer(one: Prediction) -> Sequence[str]:
    found = {n.message_id for newer in one.newer.values() for n in newer}
    named = [str(id_) for id_ in sorted(found)[:5]]
    return [*named, f"and {len(found) - 5} more"] if len(found) > 5 else named
