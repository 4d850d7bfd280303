"""``gaps``: ids that are missing, and what an operator decides when ids went back (spec 3.2)."""

import getpass
from typing import Any

import click

from msgexchange.cli import show
from msgexchange.cli.context import Misuse, Session
from msgexchange.lifecycle.gap import Gap
from msgexchange.pipeline.accept_restart import RestartRefused
from msgexchange.ports import StoreCounts


@click.group(invoke_without_command=True, epilog="Examples: run.py gaps;  run.py gaps --all --json")
@click.option("--all", "every", is_flag=True, help="Filled and permanent gaps as well.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=100, show_default=True)
@show.JSON
@click.pass_context
def gaps(context: click.Context, *, every: bool, limit: int, as_json: bool) -> None:
    """Missing mailbox ids: open gaps and late arrivals, newest first."""
    if context.invoked_subcommand is not None:
        return
    session: Session = context.obj
    with session.reads() as reads:
        counts = reads.counts()
        found = reads.gaps(every=every, limit=limit)
    if as_json:
        show.as_json(_document(counts, found))
        return
    show.pairs(
        "intake",
        {
            "watermark": counts.watermark,
            "halted": counts.halted,
            "open gaps": counts.open_gaps,
            "oldest open gap first seen": counts.oldest_gap_first_seen,
            "ids passed as permanent": counts.permanent_ids,
            "late arrivals": counts.late,
        },
    )
    show.table(
        "gaps",
        ("ids", "decision", "first seen", "decided", "why", "looked at next"),
        (
            (_ids(gap), gap.decision, gap.first_seen, gap.decided_at, gap.why, gap.next_look_at)
            for gap in found
        ),
    )


@gaps.command(
    "accept-restart",
    epilog='Example: run.py gaps accept-restart --reason "mailbox restored, ids raised above W"',
)
@click.option("--reason", required=True, help="Why intake may go on; kept in the audit.")
@click.option("--by", help="Who decides; the user of this shell without it.")
@click.pass_obj
def accept_restart(session: Session, *, reason: str, by: str | None) -> None:
    """Let intake go on after mailbox ids went back.

    Rows below the watermark that nobody knows become dead letters (LATE), for a person to judge.
    Refused while new rows would still get ids that were taken in already.
    """
    try:
        rows = session.backends.accept_restart(
            session.settings(), by=by or getpass.getuser(), reason=reason
        )
    except RestartRefused as refusal:
        raise Misuse(str(refusal)) from refusal
    click.echo(
        f"intake goes on; {rows} unknown rows below the watermark become dead letters (LATE)"
    )


def _ids(gap: Gap) -> str:
    if gap.step > 1:
        return f"{gap.lo}-{gap.hi}, off step {gap.step}"
    return str(gap.lo) if gap.lo == gap.hi else f"{gap.lo}-{gap.hi}"


def _document(counts: StoreCounts, found: Any) -> dict[str, Any]:
    return {
        "watermark": counts.watermark,
        "halted": counts.halted,
        "openGaps": counts.open_gaps,
        "oldestGapFirstSeen": counts.oldest_gap_first_seen,
        "permanentIds": counts.permanent_ids,
        "late": counts.late,
        "gaps": [
            {
                "lo": gap.lo,
                "hi": gap.hi,
                "step": gap.step,
                "decision": gap.decision,
                "firstSeen": gap.first_seen,
                "looks": gap.looks,
                "decidedAt": gap.decided_at,
                "why": gap.why,
                "nextLookAt": gap.next_look_at,
            }
            for gap in found
        ],
    }
