"""Dead letters and skipped messages, found in inbox and archive, and closed (spec 5.3)."""

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    Table,
    bindparam,
    delete,
    exists,
    literal_column,
    or_,
    select,
    union_all,
    update,
)

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.letters import REPLAYABLE_SKIPS
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import Act, HeadsMoved, Letter, LetterQuery, LettersTransaction, MetaColumns
from msgexchange.store.audit import AuditRows
from msgexchange.store.bulk import Among, Bulk
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    DEAD,
    SKIPPED,
    dead_text,
    found_by_key,
    proc_state,
    proc_state_hst,
)
from msgexchange.store.transaction import HeldWriter
from msgexchange.store.types import Stamp

_COLUMNS = (
    "msg_id",
    "state",
    "error_class",
    "last_cause",
    "error",
    "sndr",
    "type",
    "styp",
    "seqn",
    "dttm",
    "attempts",
    "received_at",
    "finished_at",
    "discarded_at",
    "replayed_at",
    "digest",
    "text_bytes",
    "traceparent",
)


class LetterRows:
    """Statements on letters; a transaction is the caller's."""

    def __init__(self, bulk: Bulk) -> None:
        id_ = BigInteger()
        self._named = bulk.select(id_, _named)
        self._texts = bulk.select(
            id_, lambda among: select(dead_text).where(among(dead_text.c.msg_id))
        )
        self.remove_texts = bulk.change(
            {"id": id_}, lambda given: delete(dead_text).where(dead_text.c.msg_id == given("id"))
        )
        self._discard = bulk.change(
            {"id": id_, "at": Stamp()},
            lambda given: (
                update(proc_state)
                .where(
                    proc_state.c.msg_id == given("id"),
                    found_by_key(proc_state.c.state == DEAD),
                    proc_state.c.discarded_at.is_(None),
                )
                .values(discarded_at=given("at"))
            ),
        )

    def named(self, connection: Connection, ids: Collection[MailboxId]) -> list[Letter]:
        """These messages, whatever their state, in id order."""
        found = (_letter(row) for row in self._named(connection, list(ids)))
        return sorted(found, key=lambda letter: letter.message_id)

    def texts(self, connection: Connection, ids: Collection[MailboxId]) -> Mapping[MailboxId, str]:
        return {
            MailboxId(row.msg_id): zlib.decompress(row.text_zlib).decode(errors="surrogatepass")
            for row in self._texts(connection, list(ids))
        }

    def discard(self, connection: Connection, ids: Sequence[MailboxId], *, now: datetime) -> None:
        """``HeadsMoved`` if one of them is not a dead letter that waits."""
        if self._discard(connection, [{"id": id_, "at": now} for id_ in ids]) != len(ids):
            raise HeadsMoved("a letter was replayed or discarded meanwhile")
        self.remove_texts(connection, [{"id": id_} for id_ in ids])


class LetterBox:
    """The ``Letters`` of the own database."""

    def __init__(self, sessions: Sessions, rows: LetterRows, audit: AuditRows) -> None:
        self._sessions = sessions
        self._rows = rows
        self._audit = audit

    def find(self, query: LetterQuery) -> Sequence[Letter]:
        with self._sessions.read() as connection:
            if query.ids is not None:
                return self._rows.named(connection, query.ids)[::-1]
            statement, given = _matching(query)
            return [_letter(row) for row in connection.execute(statement, given)]

    def texts(self, ids: Collection[MailboxId]) -> Mapping[MailboxId, str]:
        with self._sessions.look() as connection:
            return self._rows.texts(connection, ids)

    @contextmanager
    def transaction(self) -> Iterator[LettersTransaction]:
        with self._sessions.write() as connection:
            HeldWriter.lock(connection)
            yield _Transaction(connection, self._rows, self._audit)


class _Transaction:
    """A ``LettersTransaction``; the writer row is held."""

    def __init__(self, connection: Connection, rows: LetterRows, audit: AuditRows) -> None:
        self._connection = connection
        self._rows = rows
        self._audit = audit

    def letters(self, ids: Collection[MailboxId]) -> Sequence[Letter]:
        return self._rows.named(self._connection, ids)

    def discard(self, ids: Sequence[MailboxId], *, by: str, reason: str, now: datetime) -> None:
        self._rows.discard(self._connection, ids, now=now)
        act = Act(
            at=now,
            by=by,
            act="discard",
            subject=f"{len(ids)} dead letters",
            reason=reason,
            outcome="discarded",
            outcomes=dict.fromkeys(ids, "discarded"),
        )
        self._audit.write(self._connection, act)


def _of(table: Table) -> Select[Any]:
    kept = exists(select(dead_text.c.msg_id).where(dead_text.c.msg_id == table.c.msg_id))
    archived = literal_column("1" if table is proc_state_hst else "0", Integer())
    return select(
        *(table.c[name] for name in _COLUMNS), kept.label("text_kept"), archived.label("archived")
    )


def _named(among: Among) -> Select[Any]:
    both = union_all(
        *(_of(table).where(among(table.c.msg_id)) for table in (proc_state, proc_state_hst))
    )
    return select(both.subquery("m"))


def _matching(query: LetterQuery) -> tuple[Select[Any], dict[str, Any]]:
    """Dead letters that wait are never archived; what is skipped or discarded may be."""
    tables = (proc_state, proc_state_hst) if query.skipped or query.discarded else (proc_state,)
    given: dict[str, Any] = {"limit": query.limit}
    branches = [
        _of(table).where(*_state(table, query), *_filters(table, query, given)) for table in tables
    ]
    found = union_all(*branches).subquery("m")
    newest = select(found).order_by(found.c.msg_id.desc()).limit(bindparam("limit"))
    return newest, given


def _state(table: Table, query: LetterQuery) -> list[ColumnElement[bool]]:
    if query.skipped:
        codes = REPLAYABLE_SKIPS if query.skip_code is None else (query.skip_code,)
        return [
            table.c.state == SKIPPED,
            or_(*(table.c.error.like(literal_column(f"'{code}%'")) for code in codes)),
        ]
    closed = table.c.discarded_at
    return [
        table.c.state == DEAD,
        closed.is_not(None) if query.discarded else closed.is_(None),
    ]


def _filters(table: Table, query: LetterQuery, given: dict[str, Any]) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if query.error_class is not None:
        given["wanted_class"] = query.error_class.value
        wanted = bindparam("wanted_class", type_=String(16))
        conditions.append(or_(table.c.error_class == wanted, table.c.last_cause == wanted))
    if query.kind is not None:
        type_, slash, styp = query.kind.partition("/")
        given["wanted_type"] = type_
        conditions.append(table.c.type == bindparam("wanted_type"))
        if slash:
            given["wanted_styp"] = styp
            conditions.append(table.c.styp == bindparam("wanted_styp"))
    if query.sender is not None:
        given["wanted_sender"] = query.sender
        conditions.append(table.c.sndr == bindparam("wanted_sender"))
    if query.since is not None:
        given["since"] = query.since
        conditions.append(table.c.received_at >= bindparam("since", type_=Stamp()))
    if query.before is not None:
        given["before"] = query.before
        conditions.append(table.c.received_at < bindparam("before", type_=Stamp()))
    return conditions


def _letter(row: Any) -> Letter:
    return Letter(
        message_id=MailboxId(row.msg_id),
        state=MessageState(row.state),
        error_class=None if row.error_class is None else ErrorClass(row.error_class),
        last_cause=None if row.last_cause is None else ErrorClass(row.last_cause),
        error=row.error,
        meta=MetaColumns(sndr=row.sndr, type=row.type, styp=row.styp, seqn=row.seqn, dttm=row.dttm),
        attempts=row.attempts,
        received_at=row.received_at,
        finished_at=row.finished_at,
        discarded_at=row.discarded_at,
        replayed_at=row.replayed_at,
        digest=row.digest,
        text_bytes=row.text_bytes,
        traceparent=row.traceparent,
        text_kept=bool(row.text_kept),
        archived=bool(row.archived),
    )
