"""What the drivers' error codes mean to a caller (spec 3.3, "What is charged")."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from msgexchange.ports import (
    Dependency,
    MessageFault,
    PortError,
    Refused,
    RetryNow,
    Unavailable,
)

DEPENDENCY_SQLSTATES = (
    "08",  # connection exceptions
    "25006",  # read-only transaction: a fail-over left us on the standby
    "25P03",  # idle in transaction too long
    "25P04",  # transaction too long
    "28",  # log-in refused
    "3D000",  # no such database
    "53",  # disk full, out of memory, too many connections
    "55P03",  # lock not to be had in time
    "57014",  # statement took too long
    "57P",  # shut down, crashed, starting
    "58",  # the server's disk or system failed
)
"""SQLSTATEs, or the beginnings of them, that are nobody's fault but the database's."""

REFUSED_SQLSTATES = ("28", "3D000")

REFUSED_AT_CONNECT = re.compile(
    r"password authentication failed|no password supplied|no pg_hba\.conf entry"
    r"|authentication failed for user|(role|database) \".*\" does not exist"
    r"|is not permitted to log in|permission denied for database"
)
"""What the driver says where it hands no SQLSTATE on. A server that speaks another language is
taken for one that is down, and waited for.
"""

CONFLICT_SQLSTATES = ("40001", "40P01")

DEPENDENCY_SQLITE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_NOTADB,
    }
)
"""Primary result codes of SQLite that are nobody's fault but the file's."""

REFUSED_SQLITE = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_NOTADB,
    }
)
"""Those of them that waiting does not cure."""

CONFLICT_SQLITE = frozenset({sqlite3.SQLITE_BUSY_SNAPSHOT})

SQLITE_PRIMARY_CODE = 0xFF


@contextmanager
def translated() -> Iterator[None]:
    """Whatever a driver raises inside leaves as one of the failures of ``ports``."""
    try:
        yield
    except exc.DBAPIError as error:
        raise _failure(error) from error
    except exc.TimeoutError as error:
        raise Unavailable(Dependency.STORE, f"no free connection: {error}") from error
    except (exc.StatementError, UnicodeEncodeError, OverflowError) as error:
        raise MessageFault(f"the own database cannot take a value: {error}") from error


def _failure(error: exc.DBAPIError) -> PortError:
    cause = error.orig
    reason = str(cause).strip()
    if isinstance(cause, sqlite3.Error):
        return _sqlite_failure(getattr(cause, "sqlite_errorcode", None), reason)
    sqlstate = getattr(cause, "sqlstate", None)
    if sqlstate is None:
        # The server never answered: the connection broke, or the driver refused a value.
        lost = error.connection_invalidated or isinstance(
            error, exc.OperationalError | exc.InterfaceError
        )
        if not lost:
            return MessageFault(reason)
        kind = Refused if REFUSED_AT_CONNECT.search(reason) else Unavailable
        return kind(Dependency.STORE, reason)
    if sqlstate in CONFLICT_SQLSTATES:
        return RetryNow(f"{sqlstate}: {reason}")
    if sqlstate.startswith(DEPENDENCY_SQLSTATES):
        kind = Refused if sqlstate.startswith(REFUSED_SQLSTATES) else Unavailable
        return kind(Dependency.STORE, f"{sqlstate}: {reason}")
    return MessageFault(f"{sqlstate}: {reason}")


def _sqlite_failure(code: int | None, reason: str) -> PortError:
    if code is None:
        return MessageFault(reason)
    if code in CONFLICT_SQLITE:
        return RetryNow(reason)
    if code & SQLITE_PRIMARY_CODE in DEPENDENCY_SQLITE:
        kind = Refused if code & SQLITE_PRIMARY_CODE in REFUSED_SQLITE else Unavailable
        return kind(Dependency.STORE, reason)
    return MessageFault(reason)
