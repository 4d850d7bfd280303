"""Back-fill columns of PROC_STATE: which mailbox rows still need their mark (spec 3.6)."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, Text, bindparam, or_, select, update

from msgexchange.ids import Fence, MailboxId
from msgexchange.ports import DueMark, MarkOutcome
from msgexchange.store.bulk import Bulk, Given
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import found_by_key, proc_state
from msgexchange.store.transaction import check_fence
from msgexchange.store.types import Stamp

OTHER_VALUE_RETRY = timedelta(seconds=30)

_DUE = (
    select(proc_state.c.msg_id, proc_state.c.backfill_attempts, proc_state.c.received_at)
    .where(
        proc_state.c.backfill_next_at.is_not(None),
        or_(
            proc_state.c.backfill_next_at <= bindparam("now", type_=Stamp()),
            proc_state.c.received_at <= bindparam("overdue_before", type_=Stamp()),
        ),
    )
    .order_by(proc_state.c.backfill_next_at, proc_state.c.msg_id)
    .limit(bindparam("limit"))
)


class Marks:
    """Statements on the back-fill columns; a transaction is the caller's."""

    def __init__(self, bulk: Bulk) -> None:
        self._record = bulk.change(
            {
                "msg_id": BigInteger(),
                "backfill_at": Stamp(),
                "backfill_next_at": Stamp(),
                "backfill_error": Text(),
                "failed": Integer(),
            },
            _record,
        )

    def record(
        self, connection: Connection, marked: Mapping[MailboxId, MarkOutcome], *, now: datetime
    ) -> None:
        """Done marks are done; a foreign mark is tried again in 30 s."""
        self._record(connection, [_outcome_row(id_, how, now) for id_, how in marked.items()])

    def postpone(
        self, connection: Connection, next_at: Mapping[MailboxId, datetime], *, error: str
    ) -> None:
        self._record(connection, [_open_row(id_, at, error) for id_, at in next_at.items()])


class Backfill:
    """The ``BackfillStore`` of the own database."""

    def __init__(self, sessions: Sessions, marks: Marks) -> None:
        self._sessions = sessions
        self._marks = marks

    def due_marks(
        self, *, now: datetime, overdue_before: datetime, limit: int
    ) -> Sequence[DueMark]:
        with self._sessions.look() as connection:
            rows = connection.execute(
                _DUE, {"now": now, "overdue_before": overdue_before, "limit": limit}
            )
            return [
                DueMark(MailboxId(row.msg_id), row.backfill_attempts, row.received_at)
                for row in rows
            ]

    def record_marks(self, marked: Mapping[MailboxId, MarkOutcome], *, now: datetime) -> None:
        with self._sessions.write() as connection:
            self._marks.record(connection, marked, now=now)

    def postpone_marks(self, next_at: Mapping[MailboxId, datetime], *, error: str) -> None:
        with self._sessions.write() as connection:
            self._marks.postpone(connection, next_at, error=error)

    def check_fence(self, fence: Fence) -> None:
        check_fence(self._sessions, fence)


def _record(given: Given) -> Any:
    return (
        update(proc_state)
        .where(
            proc_state.c.msg_id == given("msg_id"),
            # Only a mark that is still awaited: what is confirmed stays as it was confirmed.
            found_by_key(proc_state.c.backfill_next_at.is_not(None)),
        )
        .values(
            backfill_at=given("backfill_at"),
            backfill_next_at=given("backfill_next_at"),
            backfill_error=given("backfill_error"),
            backfill_attempts=proc_state.c.backfill_attempts + given("failed"),
        )
    )


def _outcome_row(id_: MailboxId, outcome: MarkOutcome, now: datetime) -> dict[str, Any]:
    match outcome:
        case MarkOutcome.OTHER_VALUE:
            return _open_row(id_, now + OTHER_VALUE_RETRY, outcome.value)
        case MarkOutcome.MARKED:
            return _done_row(id_, now, None)
        case MarkOutcome.ROW_GONE:
            return _done_row(id_, now, outcome.value)


def _done_row(id_: MailboxId, at: datetime, remark: str | None) -> dict[str, Any]:
    return {
        "msg_id": id_,
        "backfill_at": at,
        "backfill_next_at": None,
        "backfill_error": remark,
        "failed": 0,
    }


def _open_row(id_: MailboxId, next_at: datetime, error: str) -> dict[str, Any]:
    return {
        "msg_id": id_,
        "backfill_at": None,
        "backfill_next_at": next_at,
        "backfill_error": error,
        "failed": 1,
    }
