"""The mailbox as SQL: one statement a call, never a lock but the mark's own (spec 3.1)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, Executable, Row, Select

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.watermark import MailboxRow
from msgexchange.mailbox.errors import translated
from msgexchange.mailbox.statements import Statements
from msgexchange.ports import (
    InsertUnknown,
    Listing,
    MarkOutcome,
    Text,
    TextMissing,
    Unavailable,
)

ID_MAX = (1 << 63) - 1
"""The largest id a BIGINT column can hold."""


class SqlMailbox:
    """Port ``Mailbox`` over an autocommit engine; safe to share between threads."""

    def __init__(
        self,
        engine: Engine,
        statements: Statements,
        *,
        begin: str,
        check: Callable[[Connection], Sequence[str]],
        next_id: Select[Any],
    ) -> None:
        self._engine = engine
        self._statements = statements
        self._begin = begin
        self._check = check
        self._next_id = next_id

    def list_after(self, watermark: int, *, limit: int, id_max: int | None) -> Listing:
        rows = self._all(
            self._statements.list_after,
            watermark=watermark,
            id_max=ID_MAX if id_max is None else id_max,
            limit=limit,
        )
        # The two halves of a UNION carry no promise about their order.
        told = next(row for row in rows if row.started_at is not None)
        listed = sorted((row.id, row.octets) for row in rows if row.id is not None)
        return Listing(
            rows=[MailboxRow(MailboxId(id_), octets) for id_, octets in listed],
            started_at=_aware(told.started_at),
            newest=int(told.newest),
        )

    def ids_between(self, lo: int, hi: int, *, limit: int) -> Sequence[int]:
        rows = self._all(self._statements.ids_between, lo=lo, hi=hi, limit=limit)
        return [row[0] for row in rows]

    def next_id(self) -> int | None:
        rows = self._all(self._next_id)
        return int(rows[0][0]) if rows and rows[0][0] is not None else None

    def texts(self, ids: Sequence[MailboxId], *, bytes_max: int) -> Mapping[MailboxId, Text]:
        if not ids:
            return {}
        rows = self._all(self._statements.texts, ids=list(ids), bytes_max=bytes_max)
        found = {MailboxId(id_): _text(octets, body) for id_, octets, body in rows}
        return {id_: found.get(id_, TextMissing.ROW_GONE) for id_ in ids}

    def insert(self, text: str) -> MailboxId:
        with translated(), self._engine.connect() as connection:
            try:
                connection.exec_driver_sql(self._begin)
                result = connection.execute(self._statements.insert, {"text": text})
                id_ = MailboxId(result.lastrowid)
            except BaseException:
                # A connection inside a transaction must not go back to the pool.
                connection.invalidate()
                raise
            self._commit(connection, id_)
        return id_

    def mark(
        self, ids: Sequence[MailboxId], *, overwrite: bool = False
    ) -> Mapping[MailboxId, MarkOutcome]:
        if not ids:
            return {}
        mark = self._statements.overwrite if overwrite else self._statements.mark
        with translated(), self._engine.connect() as connection:
            # In id order, as everyone else walks the table: fewer deadlocks.
            among = {"ids": sorted(set(ids))}
            changed = connection.execute(mark, among).rowcount
            if changed == len(among["ids"]):
                return dict.fromkeys(ids, MarkOutcome.MARKED)
            rows = connection.execute(self._statements.marks, among)
            read = {row[0]: row[1] for row in rows}
        return {id_: _outcome(id_, read) for id_ in ids}

    def marks_after(self, after: int, *, limit: int) -> Mapping[MailboxId, bool]:
        rows = self._all(self._statements.marks_after, after=after, limit=limit)
        return {MailboxId(id_): bool(marked) for id_, marked in rows}

    def newest_id(self) -> int:
        return self._number(self._statements.newest)

    def oldest_id(self) -> int:
        return self._number(self._statements.oldest)

    def check(self) -> Sequence[str]:
        with translated(), self._engine.connect() as connection:
            return self._check(connection)

    def close(self) -> None:
        self._engine.dispose()

    def _commit(self, connection: Connection, id_: MailboxId) -> None:
        try:
            with translated():
                connection.exec_driver_sql("COMMIT")
        except Unavailable as lost:
            connection.invalidate()
            raise InsertUnknown(
                f"the connection was lost while row {id_} was being committed ({lost.reason}): "
                "it may be there or not"
            ) from lost
        except BaseException:
            connection.invalidate()
            raise

    def _all(self, statement: Executable, **parameters: Any) -> Sequence[Row[*tuple[Any, ...]]]:
        with translated(), self._engine.connect() as connection:
            return connection.execute(statement, parameters).all()

    def _number(self, statement: Executable) -> int:
        return int(self._all(statement)[0][0])


def _text(octets: int | None, body: str | bytes | None) -> Text:
    """A text column may hold, or be, binary: UTF-8 is taken, anything else is no text."""
    if octets is None:
        return TextMissing.NO_TEXT
    if isinstance(body, bytes):
        try:
            return body.decode()
        except UnicodeDecodeError:
            return TextMissing.NOT_TEXT
    return TextMissing.TOO_LARGE if body is None else body


def _outcome(id_: MailboxId, read: Mapping[int, Any]) -> MarkOutcome:
    """What a row reads after the UPDATE passed it by: marked already, or by another with a value
    of theirs, or a trigger was in the way.
    """
    if id_ not in read:
        return MarkOutcome.ROW_GONE
    return MarkOutcome.MARKED if read[id_] else MarkOutcome.OTHER_VALUE


def _aware(utc: datetime | str) -> datetime:
    moment = datetime.fromisoformat(utc) if isinstance(utc, str) else utc
    return moment.replace(tzinfo=UTC)
