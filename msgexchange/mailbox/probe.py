"""Does a living writer hold ids that are not visible yet? Asked of the locks, opt-in (spec 3.2).

The only locking read there is: READ COMMITTED, so that it locks rows and no space between them;
NOWAIT, so that it waits for nobody; rolled back at once, so that nobody waits for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sqlalchemy import URL, Connection, Engine, create_engine, exc, make_url

from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.errors import translated
from msgexchange.ports import Probed, ProbeUnfit

_HELD: Final = frozenset({1205, 3572})
"""What NOWAIT says of a lock that another holds: MariaDB, MySQL."""
_FORBIDDEN: Final = frozenset({1044, 1142, 1143, 1227, 1290, 1792, 1836})
"""A privilege is missing, or the server takes no locking read."""
_READ_ONLY: Final = ("read_only", "super_read_only", "innodb_read_only")
_CLUSTER: Final = ("wsrep_on", "group_replication_group_name")
_REPLICA: Final = ("Slave_running", "Slaves_running", "Replica_running")
_NO: Final = frozenset({"", "0", "OFF", "NO"})

_SINCE_MYSQL: Final = (8, 0, 1)
_SINCE_MARIADB: Final = (10, 3)


class MysqlGapProbe:
    """Port ``GapProbe`` on MariaDB or MySQL 8, over one connection of its own."""

    def __init__(self, url: str | URL, columns: ColumnMap, *, timeout_s: int = 5) -> None:
        self._engine = _engine(make_url(url), timeout_s)
        quoted = self._engine.dialect.identifier_preparer.quote
        parts = (columns.schema, columns.name)
        table = ".".join(quoted(part) for part in parts if part is not None)
        key = quoted(columns.id)
        self._select = f"SELECT {key} FROM {table} WHERE {key} BETWEEN %s AND %s ORDER BY {key}"  # noqa: S608 - names checked by ColumnMap, quoted

    def probe(self, lo: int, hi: int) -> Probed:
        with translated(), self._engine.connect() as connection:
            # Asked at every probe: a server can become a replica or read-only at any time.
            unfit = next(_unfit(connection), None)
            if unfit is not None:
                raise ProbeUnfit(f"the mailbox's server {unfit}")
            lock = lock_clause(str(connection.exec_driver_sql("SELECT VERSION()").scalar_one()))
            try:
                connection.exec_driver_sql("BEGIN")
                connection.exec_driver_sql(f"{self._select} {lock}", (lo, hi)).all()
            except exc.DBAPIError as error:
                return _judged(error)
            finally:
                _rollback(connection)
        return Probed.EMPTY

    def close(self) -> None:
        self._engine.dispose()


def lock_clause(version: str) -> str:
    """How a server of this version is asked for share locks without waiting; ``ProbeUnfit`` for
    one that cannot be.
    """
    numbers = tuple(int(part) for part in version.partition("-")[0].split(".")[:3])
    if "mariadb" in version.lower():
        if numbers >= _SINCE_MARIADB:
            return "LOCK IN SHARE MODE NOWAIT"
    elif numbers >= _SINCE_MYSQL:
        return "FOR SHARE NOWAIT"
    raise ProbeUnfit(f"version {version} of the mailbox's server knows no NOWAIT")


def _engine(url: URL, timeout_s: int) -> Engine:
    return create_engine(
        url.set(drivername="mysql+pymysql"),
        isolation_level="AUTOCOMMIT",
        pool_size=1,
        max_overflow=0,
        pool_timeout=timeout_s,
        pool_recycle=1800,
        pool_reset_on_return=None,
        connect_args={
            "connect_timeout": timeout_s,
            "read_timeout": timeout_s,
            "write_timeout": timeout_s,
            "charset": "utf8mb4",
            "init_command": "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        },
    )


def _judged(error: exc.DBAPIError) -> Probed:
    arguments = error.orig.args if error.orig is not None else ()
    code = arguments[0] if arguments else None
    if code in _HELD:
        return Probed.HELD
    if code in _FORBIDDEN:
        raise ProbeUnfit(f"the mailbox's server refuses it: {error.orig}") from error
    raise error


def _rollback(connection: Connection) -> None:
    try:
        connection.exec_driver_sql("ROLLBACK")
    except exc.DBAPIError:
        # The connection is gone, its locks with it; it must not go back to the pool.
        connection.invalidate()


def _unfit(connection: Connection) -> Iterator[str]:
    variables = _told(connection, "VARIABLES", (*_READ_ONLY, *_CLUSTER))
    status = _told(connection, "STATUS", _REPLICA)
    if any(variables.get(name, "") not in _NO for name in _READ_ONLY):
        yield "is read-only: the writers' locks are not there"
    if any(status.get(name, "") not in _NO for name in _REPLICA):
        yield "is a replica: the writers' locks are not there"
    if any(variables.get(name, "") not in _NO for name in _CLUSTER):
        yield "is one of a cluster: locks on its other members are not seen"


def _told(connection: Connection, what: str, names: Sequence[str]) -> Mapping[str, str]:
    listed = ", ".join(f"'{name}'" for name in names)
    rows = connection.exec_driver_sql(f"SHOW GLOBAL {what} WHERE Variable_name IN ({listed})")
    return {row[0]: str(row[1]).upper() for row in rows}
