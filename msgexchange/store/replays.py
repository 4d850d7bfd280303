"""Replay orders, what they are decided by, and the one transaction they end in (spec 5.3)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Connection,
    Select,
    String,
    bindparam,
    delete,
    insert,
    literal_column,
    select,
    union_all,
    update,
)

from msgexchange.ids import Fence, Flid, MailboxId
from msgexchange.lifecycle.states import MessageState
from msgexchange.ports import (
    Act,
    Batch,
    HeadsMoved,
    Letter,
    ReplayOrder,
    ReplayReads,
    ReplayTransaction,
    Saying,
)
from msgexchange.store.audit import AuditRows
from msgexchange.store.bulk import Bulk
from msgexchange.store.letters import LetterRows
from msgexchange.store.pump import FoldReading, PumpStatements, write_batch
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    FLID_CHARS,
    flight_change,
    names_of,
    proc_state,
    proc_state_hst,
    replay_order,
)
from msgexchange.store.transaction import HeldWriter, leader_transaction

_ORDER = replay_order.c
_ORDER_ID = bindparam("wanted", type_=String(32))
_ONE = select(replay_order).where(_ORDER.order_id == _ORDER_ID)
_OPEN = _ONE.where(_ORDER.finished_at.is_(None))
_NEXT = (
    select(replay_order)
    .where(_ORDER.finished_at.is_(None))
    .order_by(_ORDER.created_at, _ORDER.order_id)
    .limit(literal_column("1"))
)
_RECENT = (
    select(replay_order)
    .order_by(_ORDER.created_at.desc(), _ORDER.order_id)
    .limit(bindparam("limit"))
)
_INSERT = insert(replay_order)
_BEGIN = (
    update(replay_order)
    .where(_ORDER.order_id == _ORDER_ID, _ORDER.finished_at.is_(None))
    .values(begun=_ORDER.begun + literal_column("1"))
)
_INTERRUPTED = (
    update(replay_order)
    .where(_ORDER.order_id == _ORDER_ID, _ORDER.finished_at.is_(None))
    .values(begun=_ORDER.begun - literal_column("1"))
)
_FINISH = (
    update(replay_order)
    .where(_ORDER.order_id == _ORDER_ID, _ORDER.finished_at.is_(None))
    .values(finished_at=bindparam("at"), outcome=bindparam("how"))
)
_SUCCEEDED = literal_column("'SUCCEEDED'", String())


def _succeeded(types: str) -> Select[Any]:
    return select(
        union_all(
            *(
                select(table.c.msg_id, table.c.type, table.c.finished_at).where(
                    table.c.msg_id > bindparam("after", type_=BigInteger()),
                    table.c.state == _SUCCEEDED,
                    table.c.type.in_(bindparam(types, expanding=True)),
                )
                for table in (proc_state, proc_state_hst)
            )
        ).subquery("s")
    )


_AFTER = _succeeded("types")


class ReplayRows:
    """Statements of replays; a transaction is the caller's."""

    def __init__(self, bulk: Bulk) -> None:
        self.sayings = bulk.select(
            String(FLID_CHARS),
            lambda among: select(flight_change).where(among(flight_change.c.flid)),
        )
        id_ = BigInteger()
        self.archived = bulk.select(
            id_, lambda among: select(proc_state_hst).where(among(proc_state_hst.c.msg_id))
        )
        self.restore = bulk.insert(proc_state)
        self.unarchive = bulk.change(
            {"id": id_},
            lambda given: delete(proc_state_hst).where(proc_state_hst.c.msg_id == given("id")),
        )


class _Reading(FoldReading):
    """The ``ReplayReads`` of one connection."""

    def __init__(
        self,
        connection: Connection,
        run: PumpStatements,
        rows: ReplayRows,
        letters: LetterRows,
    ) -> None:
        super().__init__(connection, run)
        self._rows = rows
        self._letters = letters

    def letters(self, ids: Collection[MailboxId]) -> Sequence[Letter]:
        return self._letters.named(self._connection, ids)

    def sayings(self, flids: Collection[Flid]) -> Mapping[Flid, Sequence[Saying]]:
        found: dict[Flid, list[Saying]] = {}
        rows = self._rows.sayings(self._connection, list(flids))
        for row in sorted(rows, key=lambda row: int(row.state_version)):
            saying = Saying(
                version=row.state_version,
                message_id=MailboxId(row.msg_id),
                at=row.changed_at,
                fields=[name for name, _, _ in orjson.loads(row.changes)],
            )
            found.setdefault(Flid(row.flid), []).append(saying)
        return found

    def succeeded_after(
        self, types: Collection[str], after: MailboxId
    ) -> Mapping[str, Sequence[tuple[MailboxId, datetime]]]:
        rows = self._connection.execute(_AFTER, {"types": sorted(types), "after": after})
        found: dict[str, list[tuple[MailboxId, datetime]]] = {}
        for row in sorted(rows, key=lambda row: int(row.msg_id)):
            found.setdefault(row.type, []).append((MailboxId(row.msg_id), row.finished_at))
        return found


class _Transaction(_Reading):
    """A ``ReplayTransaction``; the fence and the writer row are held."""

    def __init__(  # noqa: PLR0917 - built in one place
        self,
        connection: Connection,
        writer: HeldWriter,
        run: PumpStatements,
        rows: ReplayRows,
        letters: LetterRows,
        audit: AuditRows,
    ) -> None:
        super().__init__(connection, run, rows, letters)
        self._writer = writer
        self._audit = audit

    def open_order(self, order_id: str) -> ReplayOrder | None:
        row = self._connection.execute(_OPEN, {"wanted": order_id}).one_or_none()
        return None if row is None else _order(row)

    def commit_replay(
        self, batch: Batch, *, order: ReplayOrder, act: Act, now: datetime, codec_version: str
    ) -> None:
        connection = self._connection
        ids = [result.message_id for result in batch.messages]
        self._restore(ids)
        self._run.messages.resettle(connection, batch.messages, now=now)
        gone = [r.message_id for r in batch.messages if r.state is not MessageState.DEAD]
        self._letters.remove_texts(connection, [{"id": id_} for id_ in gone])
        write_batch(
            self._writer, self._run, self._strays, batch, now=now, codec_version=codec_version
        )
        self._finish(order, act)

    def refuse(self, order: ReplayOrder, act: Act) -> None:
        self._finish(order, act)

    def _restore(self, ids: Sequence[MailboxId]) -> None:
        """Archived messages come back to the inbox: that is where outcomes are written."""
        rows = [row._mapping for row in self._rows.archived(self._connection, ids)]  # noqa: SLF001 - public by its documentation
        names = names_of(proc_state)
        self._rows.restore(self._connection, [{name: row[name] for name in names} for row in rows])
        self._rows.unarchive(self._connection, [{"id": row["msg_id"]} for row in rows])

    def _finish(self, order: ReplayOrder, act: Act) -> None:
        given = {"wanted": order.order_id, "at": act.at, "how": act.outcome}
        if self._connection.execute(_FINISH, given).rowcount != 1:
            raise HeadsMoved(f"order {order.order_id} was finished meanwhile")
        self._audit.write(self._connection, act)


class ReplayStore:
    """The ``Replays`` of the own database."""

    def __init__(
        self,
        sessions: Sessions,
        statements: PumpStatements,
        rows: ReplayRows,
        letters: LetterRows,
        audit: AuditRows,
    ) -> None:
        self._sessions = sessions
        self._run = statements
        self._rows = rows
        self._letters = letters
        self._audit = audit

    @contextmanager
    def reading(self) -> Iterator[ReplayReads]:
        with self._sessions.survey() as connection:
            yield _Reading(connection, self._run, self._rows, self._letters)

    def texts(self, ids: Collection[MailboxId]) -> Mapping[MailboxId, str]:
        with self._sessions.look() as connection:
            return self._letters.texts(connection, ids)

    def write_order(self, order: ReplayOrder) -> None:
        with self._sessions.write() as connection:
            HeldWriter.lock(connection)
            connection.execute(_INSERT, _order_row(order))

    def order(self, order_id: str) -> ReplayOrder | None:
        with self._sessions.look() as connection:
            row = connection.execute(_ONE, {"wanted": order_id}).one_or_none()
            return None if row is None else _order(row)

    def orders(self, *, limit: int) -> Sequence[ReplayOrder]:
        with self._sessions.look() as connection:
            return [_order(row) for row in connection.execute(_RECENT, {"limit": limit})]

    def next_order(self) -> ReplayOrder | None:
        with self._sessions.look() as connection:
            row = connection.execute(_NEXT).one_or_none()
            return None if row is None else _order(row)

    def begin(self, fence: Fence, order_id: str) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            connection.execute(_BEGIN, {"wanted": order_id})

    def interrupted(self, fence: Fence, order_id: str) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            connection.execute(_INTERRUPTED, {"wanted": order_id})

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[ReplayTransaction]:
        with leader_transaction(self._sessions, fence) as connection:
            writer = HeldWriter.lock(connection)
            yield _Transaction(
                connection, writer, self._run, self._rows, self._letters, self._audit
            )


def _order_row(order: ReplayOrder) -> dict[str, Any]:
    return {
        "order_id": order.order_id,
        "ordered_by": order.by,
        "reason": order.reason,
        "allow_regression": int(order.allow_regression),
        "plan": order.plan,
        "created_at": order.created_at,
        "finished_at": None,
        "outcome": None,
        "begun": 0,
    }


def _order(row: Any) -> ReplayOrder:
    return ReplayOrder(
        order_id=row.order_id,
        by=row.ordered_by,
        reason=row.reason,
        allow_regression=bool(row.allow_regression),
        plan=row.plan,
        created_at=row.created_at,
        begun=row.begun,
        finished_at=row.finished_at,
        outcome=row.outcome,
    )
