"""Engines of the own database: bounded pools, every wait bounded, all below the lease (3.5)."""

import sqlite3
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.engine import URL, make_url

_WRITES = "msgexchange_writes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long an own-database session may wait for anything; below the lease of 5 s."""

    connect: timedelta = timedelta(seconds=3)
    """The driver counts whole seconds and at least two."""
    lock: timedelta = timedelta(seconds=3)
    statement: timedelta = timedelta(seconds=4)
    idle_in_transaction: timedelta = timedelta(seconds=4)
    pool: timedelta = timedelta(seconds=4)


LEASE_WAITS = Waits(
    connect=timedelta(seconds=2),
    lock=timedelta(seconds=1),
    statement=timedelta(milliseconds=1500),
    idle_in_transaction=timedelta(seconds=2),
    pool=timedelta(seconds=1),
)
"""For the few sessions that renew and take the lease: several tries must fit into one."""


SURVEY_MAX = timedelta(minutes=10)
"""For reading a whole store, such as a check of all invariants does."""


def session_name(owner: str) -> str:
    """What the sessions of one process are called in the database's list of sessions."""
    return f"msgexchange-{owner}"


def open_engine(
    url: str, *, waits: Waits | None = None, connections_max: int = 10, owner: str = ""
) -> Engine:
    """An engine for ``postgresql://...``, ``sqlite:///FILE`` or ``sqlite://`` (in memory).

    Nothing connects yet. ``owner`` names the process in the database's list of sessions, so that
    the process that takes over can end what a frozen one left. An in-memory store lives on one
    connection, lent to one thread at a time, and ends with the engine.

    ``ValueError`` for any other database.
    """
    parsed = make_url(url)
    waits = waits or Waits()
    match parsed.get_backend_name():
        case "postgresql":
            return _postgresql(parsed, waits, connections_max, owner)
        case "sqlite" if parsed.database in (None, "", ":memory:"):
            return _sqlite_memory(sqlite3.connect(":memory:", check_same_thread=False), waits)
        case "sqlite":
            return _sqlite_file(parsed, waits, connections_max)
        case other:
            raise ValueError(f"no own database on {other}: use postgresql:// or sqlite:///FILE")


def cloned_in_memory(template: Engine) -> Engine:
    """An in-memory store with the schema and rows of another in-memory one."""
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    with template.connect() as connection:
        source = connection.connection.driver_connection
        assert isinstance(source, sqlite3.Connection)
        source.backup(copy)
    return _sqlite_memory(copy, Waits())


def writing(engine: Engine) -> Engine:
    """The same pool, for transactions that write: on SQLite they take the write lock at once.

    A deferred transaction that turns to writing cannot wait for another writer; it fails.
    """
    return engine.execution_options(**{_WRITES: True})


def reading(engine: Engine) -> Engine:
    """The same pool, for transactions that read several times and must see one moment."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


def take_long(connection: Connection) -> None:
    """Let the transaction at hand, which only reads, last as long as a person waits for it."""
    if connection.dialect.name == "postgresql":
        for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {name} = {_milliseconds(SURVEY_MAX)}")


def looking(engine: Engine) -> Engine:
    """The same pool, for single statements that need no transaction around them."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="AUTOCOMMIT")
    return engine


def _postgresql(url: URL, waits: Waits, connections_max: int, owner: str) -> Engine:
    settings = {
        "lock_timeout": waits.lock,
        "statement_timeout": waits.statement,
        "idle_in_transaction_session_timeout": waits.idle_in_transaction,
    }
    options = " ".join(f"-c {name}={_milliseconds(wait)}" for name, wait in settings.items())
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="READ COMMITTED",
        skip_autocommit_rollback=True,
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=waits.pool.total_seconds(),
        connect_args={
            "connect_timeout": max(2, round(waits.connect.total_seconds())),
            "options": f"{options} -c timezone=UTC -c client_encoding=UTF8",
            "application_name": session_name(owner) if owner else "msgexchange",
            "keepalives": 1,
            "keepalives_idle": 2,
            "keepalives_interval": 1,
            "keepalives_count": 2,
            "tcp_user_timeout": _milliseconds(waits.statement),
        },
    )


def _sqlite_file(url: URL, waits: Waits, connections_max: int) -> Engine:
    engine = create_engine(
        url.set(drivername="sqlite+pysqlite"),
        poolclass=QueuePool,
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=waits.pool.total_seconds(),
        connect_args={"check_same_thread": False, "timeout": waits.lock.total_seconds()},
    )
    event.listen(engine, "connect", _prepare_file)
    _begin_ourselves(engine)
    return engine


def _sqlite_memory(connection: sqlite3.Connection, waits: Waits) -> Engine:
    engine = create_engine(
        "sqlite+pysqlite://",
        creator=lambda: connection,
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_timeout=waits.pool.total_seconds(),
    )
    _begin_ourselves(engine)
    return engine


def _prepare_file(connection: sqlite3.Connection, _record: object) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_ourselves(engine: Engine) -> None:
    """The driver would begin late, and not at all before a read: a read would see two moments."""
    event.listen(engine, "connect", _leave_transactions_alone)
    event.listen(engine, "begin", _begin)


def _leave_transactions_alone(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    options: dict[str, Any] = dict(connection.get_execution_options())
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(_WRITES) else "BEGIN")


def _milliseconds(wait: timedelta) -> int:
    return round(wait.total_seconds() * 1000)
