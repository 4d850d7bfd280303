"""INBOX_GAP rows that W has passed, and who may let halted intake go on (spec 3.2)."""

import zlib
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    bindparam,
    delete,
    insert,
    literal_column,
    select,
    union_all,
    update,
)

from msgexchange.ids import Fence
from msgexchange.lifecycle.gap import Gap, GapDecision, MailboxRow
from msgexchange.lifecycle.ranges import Range
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import Acceptance, LateRow
from msgexchange.store.bulk import Among, Bulk
from msgexchange.store.intake import LOCK_CURSOR, gap, gap_row, pending
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    CURSOR_ROW,
    ERROR_CHARS,
    dead_text,
    inbox_cursor,
    inbox_gap,
    operation_audit,
    proc_state,
    proc_state_hst,
)
from msgexchange.store.transaction import leader_transaction
from msgexchange.store.types import Stamp

_CURSOR = inbox_cursor.c.name == CURSOR_ROW
_DUE = (
    select(inbox_gap)
    .where(
        inbox_gap.c.next_look_at <= bindparam("now", type_=Stamp()),
        inbox_gap.c.decision == literal_column("'PERMANENT'"),
    )
    .order_by(inbox_gap.c.next_look_at, inbox_gap.c.lo)
    .limit(bindparam("limit"))
)
_WATERMARK = select(inbox_cursor.c.watermark).where(_CURSOR)
_BEGAN_AFTER = select(inbox_cursor.c.began_after).where(_CURSOR)
_COVERING = (
    select(inbox_gap)
    .where(
        inbox_gap.c.lo <= bindparam("greatest", type_=BigInteger()),
        inbox_gap.c.hi >= bindparam("smallest", type_=BigInteger()),
    )
    .order_by(inbox_gap.c.lo)
)
_HALT = (
    update(inbox_cursor)
    .where(_CURSOR, inbox_cursor.c.halted_at.is_(None))
    .values(halted_at=bindparam("at"), halted_why=bindparam("why"))
)
_GO_ON = (
    update(inbox_cursor)
    .where(_CURSOR)
    .values(halted_at=literal_column("NULL"), halted_why=literal_column("NULL"))
)
_STEP_RULE_OFF = (
    update(inbox_cursor)
    .where(_CURSOR, inbox_cursor.c.step_rule_off_at.is_(None))
    .values(step_rule_off_at=bindparam("at"))
)


class Gaps:
    """The ``GapStore`` of the own database."""

    def __init__(self, sessions: Sessions, bulk: Bulk, nonce: Callable[[], int]) -> None:
        self._sessions = sessions
        self._nonce = nonce
        id_ = BigInteger()
        self._known = bulk.select(id_, _known)
        self._insert_messages = bulk.insert(proc_state)
        self._insert_texts = bulk.insert(dead_text)
        self._insert_gaps = bulk.insert(inbox_gap)
        self._remove = bulk.change(
            {"lo": id_, "step": Integer()},
            lambda given: delete(inbox_gap).where(
                inbox_gap.c.lo == given("lo"), inbox_gap.c.step == given("step")
            ),
        )

    def due_for_look(self, *, now: datetime, limit: int) -> Sequence[Gap]:
        with self._sessions.read() as connection:
            watermark = connection.execute(_WATERMARK).scalar_one()
            rows = connection.execute(_DUE, {"now": now, "limit": limit})
            found = [gap(row) for row in rows]
        # A declared row reaches above W while it grows; another that does is not passed yet.
        passed = [one for one in found if one.hi <= watermark or one.step > 1]
        return sorted(passed, key=lambda one: one.lo)

    def unknown(self, ids: Sequence[int]) -> Sequence[int]:
        with self._sessions.read() as connection:
            return sorted(set(ids) - self._among(connection, ids))

    def strangers(self, ids: Sequence[int]) -> Sequence[int]:
        with self._sessions.read() as connection:
            began_after = connection.execute(_BEGAN_AFTER).scalar_one()
            left = set(ids) - self._among(connection, ids)
            left = {id_ for id_ in left if id_ > began_after}
            if left:
                among = {"smallest": min(left), "greatest": max(left)}
                for row in connection.execute(_COVERING, among):
                    ledgered = gap(row)
                    left -= {id_ for id_ in left if ledgered.holds(id_)}
        return sorted(left)

    def record_looks(
        self,
        fence: Fence,
        *,
        looked: Sequence[Gap],
        written: Sequence[Gap],
        late: Sequence[LateRow],
        dies: bool,
        marks: bool,
        now: datetime,
    ) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            connection.execute(LOCK_CURSOR)
            known = self._among(connection, [row.message_id for row in late])
            new = [row for row in late if row.message_id not in known]
            self._insert_messages(
                connection, [_late(row, now, dies=dies, marks=marks) for row in new]
            )
            kept = [row for row in new if dies and row.text is not None]
            self._insert_texts(connection, [_text(row, now) for row in kept])
            self._replace(connection, looked, written)

    def halt(self, fence: Fence, why: str, *, now: datetime) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            connection.execute(_HALT, {"at": now, "why": why[:ERROR_CHARS]})

    def turn_step_rule_off(self, fence: Fence, why: str, *, now: datetime) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            connection.execute(LOCK_CURSOR)
            if connection.execute(_STEP_RULE_OFF, {"at": now}).rowcount:
                self._audit(connection, Acceptance(by="scan", reason=why, at=now), "id-step-off")

    def accept(self, acceptance: Acceptance, strangers: Sequence[Range]) -> None:
        at = acceptance.at
        rows = [
            Gap(
                lo=lo,
                hi=hi,
                first_seen=at,
                decision=GapDecision.PERMANENT,
                decided_at=at,
                next_look_at=at,
                why=f"below W when ids went back; {acceptance.by}: {acceptance.reason}"[
                    :ERROR_CHARS
                ],
            )
            for lo, hi in strangers
        ]
        with self._sessions.write() as connection:
            connection.execute(LOCK_CURSOR)
            self._replace(connection, rows, rows)
            connection.execute(_GO_ON)
            self._audit(connection, acceptance, "accept-restart")

    def _among(self, connection: Connection, ids: Collection[int]) -> set[int]:
        return {row.msg_id for row in self._known(connection, ids)}

    def _replace(
        self, connection: Connection, removed: Sequence[Gap], written: Sequence[Gap]
    ) -> None:
        keys = {(one.lo, one.step) for one in (*removed, *written)}
        self._remove(connection, [{"lo": lo, "step": step} for lo, step in sorted(keys)])
        self._insert_gaps(connection, [gap_row(one) for one in written])

    def _audit(self, connection: Connection, acceptance: Acceptance, act: str) -> None:
        connection.execute(
            insert(operation_audit),
            {
                "audit_id": self._nonce(),
                "at": acceptance.at,
                "actor": acceptance.by,
                "act": act,
                "subject": "intake",
                "reason": acceptance.reason[:ERROR_CHARS],
                "outcome": "done",
            },
        )


def _known(among: Among) -> Any:
    both = union_all(
        select(proc_state.c.msg_id).where(among(proc_state.c.msg_id)),
        select(proc_state_hst.c.msg_id).where(among(proc_state_hst.c.msg_id)),
    )
    return select(both.subquery("k"))


def _late(row: LateRow, now: datetime, *, dies: bool, marks: bool) -> dict[str, Any]:
    waiting = pending(MailboxRow(row.message_id, row.text_bytes), now, None)
    if not dies:
        return waiting
    return waiting | {
        "state": MessageState.DEAD.value,
        "error_class": ErrorClass.LATE.value,
        "error": row.error[:ERROR_CHARS],
        "finished_at": now,
        "backfill_next_at": now if marks else None,
    }


def _text(row: LateRow, now: datetime) -> dict[str, Any]:
    assert row.text is not None
    octets = row.text.encode(errors="surrogatepass")
    return {"msg_id": row.message_id, "text_zlib": zlib.compress(octets), "kept_at": now}
