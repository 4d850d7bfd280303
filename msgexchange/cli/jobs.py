"""``jobs``: the daily jobs, how their last runs ended, when they are due next (spec 5.4)."""

from collections.abc import Mapping, Sequence

import click

from msgexchange.cli import show
from msgexchange.cli.context import WRONG, JobView, Session


@click.command(epilog="Example: run.py jobs --json")
@show.JSON
@click.pass_context
def jobs(context: click.Context, *, as_json: bool) -> None:
    """Daily jobs: last run, how it ended, next run. Exit status 1 if one has failed."""
    session: Session = context.obj
    found = session.backends.jobs(session.settings())
    if as_json:
        show.as_json([_document(job) for job in found])
    else:
        show.table(
            "jobs",
            ("job", "state", "for day", "began", "ended", "outcome", "due next"),
            (_row(job) for job in found),
        )
    if any(job.state == "failed" for job in found):
        context.exit(WRONG)


def _row(job: JobView) -> Sequence[object]:
    last = job.last
    if last is None:
        return (job.name, job.state, None, None, None, None, job.next_at)
    return (
        job.name,
        job.state,
        last.day,
        last.started_at,
        last.finished_at,
        last.outcome,
        job.next_at,
    )


def _document(job: JobView) -> Mapping[str, object]:
    last = job.last
    return {
        "job": job.name,
        "state": job.state,
        "day": last and last.day,
        "startedAt": last and last.started_at,
        "finishedAt": last and last.finished_at,
        "outcome": last and last.outcome,
        "keptSince": last and last.kept_since,
        "nextAt": job.next_at,
    }
