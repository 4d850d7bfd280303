"""COUTMSGS: where requests are written (spec 4.5)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    func,
    insert,
    inspect,
    literal,
    make_url,
    select,
)
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.sql.type_api import TypeEngine

from msgexchange.mailbox.columns import check_names
from msgexchange.mailbox.errors import translated
from msgexchange.mailbox.mysql import mysql_engine, mysql_sql
from msgexchange.mailbox.sqlite import sqlite_engine, sqlite_sql
from msgexchange.mailbox.statements import MILLISECONDS, Sql
from msgexchange.ports import InsertUnknown, Unavailable

CONNECTIONS_MAX: Final = 2
LOOKED_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OutColumnMap:
    """Names of the outbound table; the defaults are COUTMSGS. ``table`` may be ``schema.table``.

    ``extra`` are columns that an insert must also fill, each with its fixed value. The flag is the
    owner's: an insert leaves it to the table's default. A name that is not a plain identifier, or
    a column named twice, is a ``ValueError``.
    """

    table: str = "COUTMSGS"
    id: str = "COUTMSGS_ID"
    text: str = "MSG_TEXT"
    created: str = "CREATED_TIME"
    flag: str = "SEND_FLAG"
    extra: Mapping[str, str | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_names(self.table, list(self.columns()))

    def columns(self) -> Iterator[str]:
        """Every column known of."""
        yield from (self.id, self.text, self.created, self.flag)
        yield from self.extra


class SqlOutMailbox:
    """Port ``OutMailbox`` over an autocommit engine; safe to share between threads."""

    def __init__(self, engine: Engine, columns: OutColumnMap, sql: Sql) -> None:
        self._engine = engine
        self._columns = columns
        self._begin = sql.begin
        table = out_table(columns)
        id_, body = table.c[columns.id], table.c[columns.text]
        self._newest = select(func.coalesce(func.max(id_), 0))
        self._one = select(id_).where(id_ == bindparam("id"))
        self._insert = insert(table).values(
            {
                columns.text: bindparam("text", type_=Text),
                columns.created: sql.local_now,
                **{name: literal(value) for name, value in columns.extra.items()},
            }
        )
        # Its length first: a comparison of texts would follow the column's collation, for which
        # other letters may be the same.
        self._alike = (
            select(id_, body)
            .where(id_ > bindparam("after"), sql.octets(body) == bindparam("octets"))
            .order_by(id_)
            .limit(LOOKED_AT_ONCE)
        )

    def newest_id(self) -> int:
        with translated(), self._engine.connect() as connection:
            return int(connection.execute(self._newest).scalar_one())

    def has(self, id_: int) -> bool:
        with translated(), self._engine.connect() as connection:
            return connection.execute(self._one, {"id": id_}).first() is not None

    def insert(self, text: str) -> int:
        with translated(), self._engine.connect() as connection:
            try:
                connection.exec_driver_sql(self._begin)
                id_ = int(connection.execute(self._insert, {"text": text}).lastrowid)
            except BaseException:
                # A connection inside a transaction must not go back to the pool.
                connection.invalidate()
                raise
            _commit(connection, id_)
        return id_

    def ids_of(self, text: str, *, after: int) -> Sequence[int]:
        found: list[int] = []
        octets = len(text.encode())
        while True:
            with translated(), self._engine.connect() as connection:
                given = {"after": after, "octets": octets}
                rows = connection.execute(self._alike, given).all()
            found += [int(id_) for id_, body in rows if _plain(body) == text]
            if len(rows) < LOOKED_AT_ONCE:
                return found
            after = int(rows[-1][0])

    def check(self) -> Sequence[str]:
        with translated(), self._engine.connect() as connection:
            return list(_problems(connection, self._columns))

    def close(self) -> None:
        self._engine.dispose()


def open_mysql_outbound(
    url: str | URL,
    columns: OutColumnMap,
    *,
    connect_timeout_s: int = 5,
    read_timeout_s: int = 15,
    write_timeout_s: int = 15,
) -> SqlOutMailbox:
    """The table at ``mysql://USER:PASSWORD@HOST[:PORT]/DATABASE``; nothing connects before the
    first call.
    """
    engine = mysql_engine(
        make_url(url),
        connections_max=CONNECTIONS_MAX,
        connect_timeout_s=connect_timeout_s,
        read_timeout_s=read_timeout_s,
        write_timeout_s=write_timeout_s,
    )
    return SqlOutMailbox(engine, columns, mysql_sql())


def open_sqlite_outbound(file: Path, columns: OutColumnMap) -> SqlOutMailbox:
    """The table in ``file``, which is created if it is not there."""
    engine = sqlite_engine(file, connections_max=CONNECTIONS_MAX)
    with translated(), engine.connect() as connection:
        out_table(columns).create(connection, checkfirst=True)
    return SqlOutMailbox(engine, columns, sqlite_sql())


def out_table(columns: OutColumnMap) -> Table:
    """The outbound table under its owner's names."""
    schema, _, name = columns.table.rpartition(".")
    key: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
    return Table(
        name,
        MetaData(),
        Column(columns.id, key, primary_key=True, autoincrement=True),
        Column(columns.text, Text().with_variant(LONGTEXT(charset="utf8mb4"), "mysql", "mariadb")),
        Column(columns.created, MILLISECONDS),
        Column(columns.flag, String(1), server_default="N"),
        *(
            Column(extra, Integer if isinstance(value, int) else String(255))
            for extra, value in columns.extra.items()
        ),
        schema=schema or None,
        sqlite_autoincrement=True,
        implicit_returning=False,
    )


def _commit(connection: Connection, id_: int) -> None:
    try:
        with translated():
            connection.exec_driver_sql("COMMIT")
    except Unavailable as lost:
        connection.invalidate()
        raise InsertUnknown(
            f"the connection was lost while outbound row {id_} was being committed "
            f"({lost.reason}): it may be there or not"
        ) from lost
    except BaseException:
        connection.invalidate()
        raise


def _problems(connection: Connection, columns: OutColumnMap) -> Iterator[str]:
    schema, _, name = columns.table.rpartition(".")
    looked = inspect(connection)
    if not looked.has_table(name, schema or None):
        yield (
            f"mailbox: no table {columns.table} that this user may see; set mailbox.outbound.table "
            "or grant SELECT and INSERT on it. Requests cannot be sent"
        )
        return
    there: list[Any] = list(looked.get_columns(name, schema or None))
    known = {str(column["name"]).casefold() for column in there}
    for wanted in columns.columns():
        if wanted.casefold() not in known:
            yield (
                f"mailbox: {columns.table} has no column {wanted}; "
                "name the right one in mailbox.outbound"
            )
    filled = {name.casefold() for name in columns.columns()}
    for column in there:
        needs = not column["nullable"] and column.get("default") is None
        if needs and str(column["name"]).casefold() not in filled:
            yield (
                f"mailbox: {columns.table}.{column['name']} must be filled by an insert; "
                "give its value in mailbox.outbound.extra-columns"
            )


def _plain(body: str | bytes | None) -> str | None:
    return body.decode(errors="replace") if isinstance(body, bytes) else body
