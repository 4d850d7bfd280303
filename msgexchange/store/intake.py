"""INBOX_CURSOR, INBOX_GAP and new PROC_STATE rows (spec 3.2)."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    bindparam,
    delete,
    exists,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from msgexchange.ids import Fence
from msgexchange.lifecycle.gap import Gap, GapDecision, MailboxRow
from msgexchange.lifecycle.states import MessageState
from msgexchange.lifecycle.watermark import ScanPlan
from msgexchange.ports import IntakeState, IntakeTransaction
from msgexchange.store.bulk import Bulk
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    CURSOR_ROW,
    inbox_cursor,
    inbox_gap,
    names_of,
    operation_audit,
    proc_state,
)
from msgexchange.store.transaction import leader_transaction

_CURSOR = select(
    inbox_cursor.c.watermark,
    inbox_cursor.c.began_after,
    inbox_cursor.c.halted_why,
    inbox_cursor.c.step_rule_off_at,
).where(inbox_cursor.c.name == CURSOR_ROW)
LOCK_CURSOR = _CURSOR.with_for_update()
_LEDGER = (
    select(inbox_gap)
    .where(
        inbox_gap.c.hi > bindparam("watermark", type_=BigInteger()),
        inbox_gap.c.decision != literal_column("'LATE'"),
    )
    .order_by(inbox_gap.c.lo)
)
_MOVE = (
    update(inbox_cursor)
    .where(
        inbox_cursor.c.name == CURSOR_ROW,
        inbox_cursor.c.watermark <= bindparam("moved_to", type_=BigInteger()),
    )
    .values(watermark=bindparam("moved_to", type_=BigInteger()))
)
_BEGIN = (
    update(inbox_cursor)
    .where(inbox_cursor.c.name == CURSOR_ROW)
    .values(
        watermark=bindparam("moved_to"),
        began_after=bindparam("moved_to"),
        begun_at=bindparam("begun"),
    )
)
_BEGUN = select(inbox_cursor.c.name).where(
    inbox_cursor.c.name == CURSOR_ROW,
    or_(
        inbox_cursor.c.begun_at.is_not(None),
        inbox_cursor.c.watermark > literal_column("0"),
        exists(select(proc_state.c.msg_id)),
    ),
)
_AUDIT = insert(operation_audit)


class Intake:
    """The ``IntakeStore`` of the own database."""

    def __init__(self, sessions: Sessions, bulk: Bulk, nonce: Callable[[], int]) -> None:
        self._sessions = sessions
        self._nonce = nonce
        self._statements = _Statements(bulk)

    @contextmanager
    def transaction(self, fence: Fence | None) -> Iterator[IntakeTransaction]:
        opened = (
            self._sessions.write() if fence is None else leader_transaction(self._sessions, fence)
        )
        with opened as connection:
            cursor = connection.execute(LOCK_CURSOR).one()
            yield _Transaction(connection, cursor, self._statements)

    def state(self) -> IntakeState:
        with self._sessions.read() as connection:
            return _state(connection, connection.execute(_CURSOR).one())

    def begin_after(
        self, watermark: int, *, by: str, now: datetime, gaps: Sequence[Gap] = ()
    ) -> bool:
        with self._sessions.write() as connection:
            connection.execute(LOCK_CURSOR)
            if _has_begun(connection):
                return False
            connection.execute(_BEGIN, {"moved_to": watermark, "begun": now})
            self._statements.insert_gaps(connection, [gap_row(gap) for gap in gaps])
            connection.execute(
                _AUDIT,
                {
                    "audit_id": self._nonce(),
                    "at": now,
                    "actor": by,
                    "act": "begin-after",
                    "subject": f"watermark {watermark}",
                    "reason": None,
                    "outcome": "done",
                },
            )
            return True

    def is_new(self) -> bool:
        with self._sessions.look() as connection:
            return not _has_begun(connection)


class _Statements:
    def __init__(self, bulk: Bulk) -> None:
        id_ = BigInteger()
        self.insert_messages = bulk.insert(proc_state)
        self.known = bulk.select(
            id_, lambda among: select(proc_state.c.msg_id).where(among(proc_state.c.msg_id))
        )
        self.remove_gaps = bulk.change(
            {"lo": id_, "step": Integer()},
            lambda given: delete(inbox_gap).where(
                inbox_gap.c.lo == given("lo"), inbox_gap.c.step == given("step")
            ),
        )
        self.insert_gaps = bulk.insert(inbox_gap)


class _Transaction:
    """An ``IntakeTransaction``; the cursor row is locked."""

    def __init__(self, connection: Connection, cursor: Any, statements: _Statements) -> None:
        self._connection = connection
        self._cursor = cursor
        self._watermark: int = cursor.watermark
        self._run = statements

    @property
    def watermark(self) -> int:
        return self._watermark

    @property
    def halted(self) -> str | None:
        why: str | None = self._cursor.halted_why
        return why

    def apply(
        self,
        plan: ScanPlan,
        *,
        now: datetime,
        origin: Callable[[], str | None] = lambda: None,
    ) -> int:
        new = self._unknown([row.message_id for row in plan.enqueue])
        rows = [pending(row, now, origin()) for row in plan.enqueue if row.message_id in new]
        self._run.insert_messages(self._connection, rows)
        removed = [{"lo": lo, "step": 1} for lo in plan.removed]
        written = [gap_row(gap) for gap in plan.written]
        if plan.declared is not None:
            removed.append({"lo": plan.declared.lo, "step": plan.declared.step})
            written.append(gap_row(plan.declared))
        self._run.remove_gaps(self._connection, removed)
        self._run.insert_gaps(self._connection, written)
        if plan.watermark != self._watermark:
            self._move(plan.watermark)
        return len(rows)

    def enqueue(self, row: MailboxRow, *, now: datetime, traceparent: str | None) -> bool:
        if row.message_id <= self._watermark or not self._unknown([row.message_id]):
            return False
        self._run.insert_messages(self._connection, [pending(row, now, traceparent)])
        return True

    def _unknown(self, ids: Sequence[int]) -> Collection[int]:
        known = {row.msg_id for row in self._run.known(self._connection, ids)}
        return set(ids) - known

    def _move(self, watermark: int) -> None:
        moved = self._connection.execute(_MOVE, {"moved_to": watermark}).rowcount
        if moved != 1:
            raise ValueError(f"the watermark stands at {self._watermark}, not below {watermark}")
        self._watermark = watermark


def _state(connection: Connection, cursor: Any) -> IntakeState:
    rows = connection.execute(_LEDGER, {"watermark": cursor.watermark})
    return IntakeState(
        cursor.watermark,
        [gap(row) for row in rows],
        began_after=cursor.began_after,
        halted=cursor.halted_why,
        step_rule_off=cursor.step_rule_off_at is not None,
    )


def _has_begun(connection: Connection) -> bool:
    return connection.execute(_BEGUN).first() is not None


def gap(row: Any) -> Gap:
    return Gap(
        lo=row.lo,
        hi=row.hi,
        first_seen=row.first_seen,
        looks=row.looks,
        decision=GapDecision(row.decision),
        decided_at=row.decided_at,
        why=row.why,
        step=row.step,
        next_look_at=row.next_look_at,
    )


def gap_row(gap: Gap) -> dict[str, Any]:
    return {
        "lo": gap.lo,
        "hi": gap.hi,
        "step": gap.step,
        "first_seen": gap.first_seen,
        "looks": gap.looks,
        "decision": gap.decision.value,
        "decided_at": gap.decided_at,
        "why": gap.why,
        "next_look_at": gap.next_look_at,
    }


def pending(row: MailboxRow, now: datetime, traceparent: str | None) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(names_of(proc_state))
    return values | {
        "msg_id": row.message_id,
        "state": MessageState.PENDING.value,
        "text_bytes": row.text_bytes,
        "attempts": 0,
        "backfill_attempts": 0,
        "received_at": now,
        "traceparent": traceparent,
    }
