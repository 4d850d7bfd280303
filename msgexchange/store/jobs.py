"""JOB_RUN: when each daily job last ran, and how it ended (spec 5.4)."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from msgexchange.ids import Fence
from msgexchange.ports import JobRun
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import job_run
from msgexchange.store.transaction import leader_transaction

OUTCOME_CHARS = 2_000

_ALL = select(job_run).order_by(job_run.c.job)
_ONE = select(job_run).where(job_run.c.job == bindparam("name"))
_BEGIN_AGAIN = (
    update(job_run)
    .where(job_run.c.job == bindparam("name"))
    .values(
        day=bindparam("for_day"),
        started_at=bindparam("now"),
        finished_at=None,
        outcome=None,
    )
)
_BEGIN_FIRST = insert(job_run)
_NOTE = update(job_run).where(job_run.c.job == bindparam("name"))


class JobRuns:
    """The ``JobStore`` of the own database."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def all(self) -> Sequence[JobRun]:
        """The last run of every job that ever ran, by name."""
        with self._sessions.look() as connection:
            return [_run(row) for row in connection.execute(_ALL)]

    def last_run(self, job: str) -> JobRun | None:
        with self._sessions.look() as connection:
            row = connection.execute(_ONE, {"name": job}).one_or_none()
            return None if row is None else _run(row)

    def begin(self, fence: Fence, job: str, day: date, *, now: datetime) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            again = connection.execute(_BEGIN_AGAIN, {"name": job, "for_day": day, "now": now})
            if again.rowcount == 0:
                connection.execute(_BEGIN_FIRST, {"job": job, "day": day, "started_at": now})

    def note(self, fence: Fence, job: str, outcome: str) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            connection.execute(_NOTE, {"name": job, "outcome": outcome[:OUTCOME_CHARS]})

    def finish(
        self,
        fence: Fence,
        job: str,
        outcome: str,
        *,
        kept_since: datetime | None,
        now: datetime,
    ) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            connection.execute(
                _NOTE,
                {
                    "name": job,
                    "outcome": outcome[:OUTCOME_CHARS],
                    "finished_at": now,
                    "kept_since": kept_since,
                },
            )


def _run(row: Any) -> JobRun:
    return JobRun(
        job=row.job,
        day=row.day,
        started_at=row.started_at,
        finished_at=row.finished_at,
        outcome=row.outcome,
        kept_since=row.kept_since,
    )
