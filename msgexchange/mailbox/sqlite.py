"""The mailbox of the embedded profile: one SQLite file that several processes may share."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Engine,
    LargeBinary,
    Select,
    Table,
    bindparam,
    cast,
    create_engine,
    delete,
    event,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy import (
    table as sql_table,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from msgexchange.ids import MailboxId
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.errors import translated
from msgexchange.mailbox.sql_mailbox import SqlMailbox
from msgexchange.mailbox.statements import Sql, Statements, statements_of, table_of

_UTC_NOW: ColumnElement[str] = literal_column("strftime('%Y-%m-%d %H:%M:%f', 'now')")
_LOCAL_NOW: ColumnElement[str] = literal_column("strftime('%Y-%m-%d %H:%M:%f', 'now', 'localtime')")


class SqliteMailbox(SqlMailbox):
    """Port ``Mailbox`` on a file, and what its owner can do with it."""

    def __init__(
        self,
        engine: Engine,
        statements: Statements,
        *,
        begin: str,
        check: Callable[[Connection], Sequence[str]],
        next_id: Select[Any],
        remove: Delete,
    ) -> None:
        super().__init__(engine, statements, begin=begin, check=check, next_id=next_id)
        self._remove = remove

    def burn_id(self) -> MailboxId:
        """Use an id up without a row ever being seen, as an insert that is rolled back does on
        MySQL (SQLite would hand the id out again).
        """
        with translated(), self._engine.connect() as connection:
            try:
                connection.exec_driver_sql(self._begin)
                inserted = connection.execute(self._statements.insert, {"text": ""})
                id_ = MailboxId(inserted.lastrowid)
                connection.execute(self._remove, {"id": id_})
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                connection.invalidate()
                raise
        return id_


def open_sqlite_mailbox(
    file: Path, columns: ColumnMap, *, connections_max: int = 5, busy_timeout_s: float = 5.0
) -> SqliteMailbox:
    """The mailbox in ``file``; its table is created if it is not there.

    ``ValueError`` where the table is named with a schema; ``Unavailable`` where the file cannot be
    opened.
    """
    if columns.schema is not None:
        raise ValueError(f"mailbox: a SQLite file knows no schema; name the table {columns.name}")
    engine = sqlite_engine(file, connections_max=connections_max, busy_timeout_s=busy_timeout_s)
    table = table_of(columns)
    with translated(), engine.connect() as connection:
        table.create(connection, checkfirst=True)
    sql = sqlite_sql()
    return SqliteMailbox(
        engine,
        statements_of(columns, table, sql),
        begin=sql.begin,
        check=partial(_check, columns, table),
        next_id=select(literal_column("seq + 1"))
        .select_from(sql_table("sqlite_sequence"))
        .where(literal_column("name") == table.name),
        remove=delete(table).where(table.c[columns.id] == bindparam("id")),
    )


def sqlite_sql() -> Sql:
    """What SQLite says differently."""
    return Sql(
        utc_now=_UTC_NOW,
        local_now=_LOCAL_NOW,
        begin="BEGIN IMMEDIATE",
        # A text's length() counts characters, and ends at a NUL.
        octets=lambda column: func.length(cast(column, LargeBinary)),
    )


def sqlite_engine(file: Path, *, connections_max: int, busy_timeout_s: float = 5.0) -> Engine:
    """Bounded autocommit sessions on the file."""
    engine = create_engine(
        f"sqlite:///{file}",
        isolation_level="AUTOCOMMIT",
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=busy_timeout_s,
        connect_args={"timeout": busy_timeout_s},
    )
    event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    # Readers never wait for the writer; every commit is on disk when it returns.
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _check(columns: ColumnMap, table: Table, connection: Connection) -> Sequence[str]:
    """A file of an older column map keeps its table: say so instead of failing at the first use."""
    rows = connection.execute(
        text("SELECT name FROM pragma_table_info(:name)"), {"name": table.name}
    )
    there: set[Any] = {row.name.casefold() for row in rows}
    return [
        f"mailbox: {columns.table} has no column {name}; name the right one in mailbox.inbound, or "
        "begin with a new file"
        for name in columns.columns()
        if name.casefold() not in there
    ]
