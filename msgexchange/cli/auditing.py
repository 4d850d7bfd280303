"""``audit``: what people did."""

from datetime import UTC, datetime

import click

from msgexchange.cli import show
from msgexchange.cli.choosing import Moment
from msgexchange.cli.context import Session
from msgexchange.ports import Act
from msgexchange.web.letters import act_document

OUTCOMES_SHOWN = 10


@click.command(epilog="Examples: run.py audit;  run.py audit --act replay --by jl --json")
@click.option("--act", help="Of this kind only: replay, discard, redeliver, store-new-id, ...")
@click.option("--by", help="Of this person only.")
@click.option("--since", type=Moment(), help="From this time on.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@show.JSON
@click.pass_obj
def audit(
    session: Session,
    *,
    act: str | None,
    by: str | None,
    since: datetime | None,
    limit: int,
    as_json: bool,
) -> None:
    """What people did by hand: who, when, why, and what came of it. The newest first."""
    settings = session.settings()
    if since is not None:
        since = (
            since if since.tzinfo else since.replace(tzinfo=settings.site.timezone)
        ).astimezone(UTC)
    with session.backends.audit(settings) as rows:
        acts = rows.acts(act=act, by=by, since=since, limit=limit)
    if as_json:
        show.as_json([act_document(one) for one in acts])
        return
    show.table(
        "audit",
        ("at", "by", "act", "of", "reason", "outcome"),
        ((one.at, one.by, one.act, one.subject, one.reason, _outcome(one)) for one in acts),
    )


def _outcome(act: Act) -> str | None:
    if not act.outcomes:
        return act.outcome
    lines = [f"{id_}: {text}" for id_, text in list(act.outcomes.items())[:OUTCOMES_SHOWN]]
    more = len(act.outcomes) - OUTCOMES_SHOWN
    told = [*lines, f"and {more} more (--json)"] if more > 0 else lines
    return "\n".join([act.outcome or "", *told])
