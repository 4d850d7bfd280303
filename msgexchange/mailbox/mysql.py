"""The mailbox on MariaDB or MySQL (spec 3.1)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Select,
    create_engine,
    event,
    func,
    literal_column,
    make_url,
    select,
    text,
)
from sqlalchemy import (
    table as sql_table,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.sql_mailbox import SqlMailbox
from msgexchange.mailbox.statements import Sql, statements_of, table_of

TEXT_BYTES_MAX: Final = 64 << 20
"""The largest raw text that is let in (spec 1.1)."""

_STRICT: Final = (
    "SET /*!80003 SESSION information_schema_stats_expiry = 0, */ "
    "SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',STRICT_ALL_TABLES')"
)
_SESSION: Final = (
    # A REPEATABLE READ session that stays open sees a frozen table.
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    # Without it a text too long for the owner's column is cut short in silence.
    # Between its comment marks, for MySQL 8 alone: else that tells the next id of a day ago.
    _STRICT,
)

_VARIABLES = text(
    "SHOW VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', 'max_allowed_packet',"
    " 'auto_increment_increment', 'read_only')"
)
_COLUMNS = text(
    "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_SET_NAME, EXTRA, COLUMN_KEY, COLUMN_DEFAULT"
    " FROM information_schema.COLUMNS"
    " WHERE TABLE_SCHEMA = COALESCE(:schema, DATABASE()) AND TABLE_NAME = :name"
)
_NEXT_ID: Final[Select[Any]] = select(literal_column("AUTO_INCREMENT")).select_from(
    sql_table("TABLES", schema="information_schema")
)


def open_mysql_mailbox(
    url: str | URL,
    columns: ColumnMap,
    *,
    connections_max: int = 5,
    connect_timeout_s: int = 5,
    lock_timeout_s: int = 5,
    read_timeout_s: int = 15,
    write_timeout_s: int = 15,
) -> SqlMailbox:
    """The mailbox at ``mysql://USER:PASSWORD@HOST[:PORT]/DATABASE``; nothing connects before the
    first call.

    ``lock_timeout_s`` is how long a mark waits for a row that another program holds; it must end
    before the read timeout, or the UPDATE would run on at the server after we gave it up.
    """
    engine = mysql_engine(
        make_url(url),
        connections_max=connections_max,
        connect_timeout_s=connect_timeout_s,
        lock_timeout_s=lock_timeout_s,
        read_timeout_s=read_timeout_s,
        write_timeout_s=write_timeout_s,
    )
    sql = mysql_sql()
    return SqlMailbox(
        engine,
        statements_of(columns, table_of(columns), sql),
        begin=sql.begin,
        check=partial(_check, columns),
        next_id=_NEXT_ID.where(
            literal_column("TABLE_SCHEMA")
            == (func.database() if columns.schema is None else columns.schema),
            literal_column("TABLE_NAME") == columns.name,
        ),
    )


def mysql_sql() -> Sql:
    """What MariaDB and MySQL say differently."""
    return Sql(
        utc_now=func.utc_timestamp(6),
        local_now=literal_column("CURRENT_TIMESTAMP(3)"),
        begin="BEGIN",
        octets=func.octet_length,
    )


def mysql_engine(
    url: URL,
    *,
    connections_max: int,
    connect_timeout_s: int,
    lock_timeout_s: int = 5,
    read_timeout_s: int,
    write_timeout_s: int,
) -> Engine:
    """Bounded autocommit sessions as the mailbox needs them."""
    assert lock_timeout_s < read_timeout_s
    engine = create_engine(
        url.set(drivername="mysql+pymysql"),
        isolation_level="AUTOCOMMIT",
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=connect_timeout_s,
        # Below the 8 h after which a server drops an idle session.
        pool_recycle=1800,
        # What the pool does on return would be a round trip; every statement stands alone.
        pool_reset_on_return=None,
        skip_autocommit_rollback=True,
        connect_args={
            "connect_timeout": connect_timeout_s,
            "read_timeout": read_timeout_s,
            "write_timeout": write_timeout_s,
            "charset": "utf8mb4",
            # No FOUND_ROWS: a mark that a trigger of the owner's held back must count as not
            # made, so that the row is read back.
            "client_flag": 0,
        },
    )
    session = (*_SESSION, f"SET SESSION innodb_lock_wait_timeout = {lock_timeout_s}")
    event.listen(engine, "connect", partial(_prepare, session))
    return engine


def _prepare(
    session: Sequence[str], connection: DBAPIConnection, _entry: ConnectionPoolEntry
) -> None:
    cursor = connection.cursor()
    for statement in session:
        cursor.execute(statement)
    cursor.close()


def _check(columns: ColumnMap, connection: Connection) -> Sequence[str]:
    variables = {row[0]: row[1] for row in connection.execute(_VARIABLES)}
    described = {
        row.COLUMN_NAME.casefold(): row
        for row in connection.execute(_COLUMNS, {"schema": columns.schema, "name": columns.name})
    }
    return [*_server_problems(columns, variables), *_table_problems(columns, described)]


def _server_problems(columns: ColumnMap, variables: Mapping[str, str]) -> Iterator[str]:
    if variables.get("log_bin") == "ON" and variables.get("binlog_format") == "STATEMENT":
        yield (
            "mailbox: binlog_format is STATEMENT, with which the server refuses writes under "
            "READ COMMITTED; ask its owner to set ROW or MIXED"
        )
    packet = int(variables.get("max_allowed_packet", 0))
    if packet < TEXT_BYTES_MAX:
        yield (
            f"mailbox: max_allowed_packet is {packet >> 10} KiB, so a text above that can neither "
            f"be written nor read; ask its owner for {TEXT_BYTES_MAX >> 20} MiB or more"
        )
    step = int(variables.get("auto_increment_increment", 1))
    if step != columns.id_step:
        yield (
            f"mailbox: ids grow in steps of {step} (auto_increment_increment), and "
            f"{columns.id_step} is declared: ids between are waited for that never come, or not "
            "waited for though they may; declare mailbox.inbound.id-step and .id-offset"
        )
    if variables.get("read_only", "OFF") not in {"OFF", "0"}:
        yield (
            "mailbox: the server is read-only, so no mark and no message can be written; "
            "name its writable server in mailbox.url"
        )


def _table_problems(columns: ColumnMap, described: Mapping[str, Any]) -> Iterator[str]:
    if not described:
        yield (
            f"mailbox: no table {columns.table} that this user may see; set mailbox.inbound.table "
            "or grant SELECT, INSERT and UPDATE on it"
        )
        return
    for name in columns.columns():
        if name.casefold() not in described:
            yield (
                f"mailbox: {columns.table} has no column {name}; "
                "name the right one in mailbox.inbound"
            )
    key = described.get(columns.id.casefold())
    if key is not None and (key.COLUMN_KEY != "PRI" or "auto_increment" not in key.EXTRA):
        yield (
            f"mailbox: {columns.id} is not an auto-increment primary key, so ids need not follow "
            "the order of arrival; name the right column in mailbox.inbound.id-column"
        )
    flag = described.get(columns.flag.casefold())
    said = None if flag is None else flag.COLUMN_DEFAULT
    default = None if said is None or said == "NULL" else said.strip("'")
    if default is not None and default not in columns.unprocessed:
        yield (
            f"mailbox: {columns.flag} begins as {default!r}, which would be taken for another "
            "program's mark; name it in mailbox.unprocessed-values"
        )
    body = described.get(columns.text.casefold())
    if body is not None and body.CHARACTER_SET_NAME != "utf8mb4":
        yield (
            f"mailbox: {columns.text} is stored in {body.CHARACTER_SET_NAME}, which cannot hold "
            "every character; ask its owner for utf8mb4"
        )
    if body is not None and body.DATA_TYPE != "longtext":
        yield (
            f"mailbox: {columns.text} is {body.DATA_TYPE}, which holds less than the largest "
            "message; ask its owner for longtext"
        )
