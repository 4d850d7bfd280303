"""What a driver's error means to the caller, by the driver's own code (spec 3.3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sqlalchemy import exc

from msgexchange.ports import (
    Dependency,
    MessageFault,
    PortError,
    Refused,
    RetryNow,
    Unavailable,
)

MYSQL_UNAVAILABLE: Final = frozenset(
    {
        # the server cannot be reached, or went away
        *(0, 2002, 2003, 2004, 2005, 2006, 2012, 2013, 2014, 2026, 2027, 2055),
        *(1042, 1043, 1047, 1053, 1077, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1189, 1190),
        # it takes nobody in, or not us: a password that is being changed is no message's fault
        *(1040, 1041, 1044, 1045, 1129, 1130, 1203, 1226, 1251, 1637, 1698, 1820, 1862, 3118, 3159),
        # it takes no writes: read-only or offline after a fail-over, locked for a backup
        *(1207, 1223, 1290, 1792, 1836, 3032, 3100),
        # disk, memory or locks are used up, or the table is broken
        *(3, 5, 1004, 1016, 1021, 1023, 1026, 1030, 1034, 1035, 1037, 1038, 1114, 1135, 1194, 1195),
        1206,
        # stopped from outside, or out of time
        *(1317, 1927, 1969, 3024, 3169),
        # the table or our rights on it are not what they were: every message would fail alike
        *(1046, 1049, 1054, 1142, 1143, 1146, 1227, 1370, 1412, 1665, 4151),
    }
)
"""Codes of MySQL, MariaDB and PyMySQL that say: not now, for nobody."""

MYSQL_REFUSED: Final = frozenset({1044, 1045, 1049, 1698})
"""Those of them that say: not with this log-in, not in this database."""

MYSQL_RETRY_NOW: Final = frozenset({1020, 1205, 1213, 1614, 3101, 3572})
"""Row changed under us, lock wait, deadlock, certification failure of a cluster."""

_SQLITE_UNAVAILABLE: Final = frozenset({3, 7, 8, 9, 10, 11, 13, 14, 15, 17, 22, 23, 26})
"""Permission, memory, read-only, interrupt, I/O, corruption, full, cannot open, protocol, schema,
large file, authorisation, not a database."""

_SQLITE_REFUSED: Final = frozenset({3, 8, 14, 23, 26})
"""Those of them that waiting does not cure."""

_SQLITE_RETRY_NOW: Final = frozenset({5, 6})
"""Busy beyond the busy timeout, locked."""

_PRIMARY_CODE: Final = 0xFF


@dataclass(frozen=True, slots=True)
class _Codes:
    unavailable: frozenset[int]
    refused: frozenset[int]
    retry_now: frozenset[int]


_MYSQL: Final = _Codes(MYSQL_UNAVAILABLE, MYSQL_REFUSED, MYSQL_RETRY_NOW)
_SQLITE: Final = _Codes(_SQLITE_UNAVAILABLE, _SQLITE_REFUSED, _SQLITE_RETRY_NOW)


@contextmanager
def translated() -> Iterator[None]:
    """Turns what SQLAlchemy and its driver raise into the failures of ``ports``."""
    try:
        yield
    except exc.DBAPIError as error:
        raise failure_of(error.orig) from error
    except exc.TimeoutError as error:
        raise Unavailable(Dependency.MAILBOX, f"every connection is in use: {error}") from error
    except OSError as error:
        raise Unavailable(Dependency.MAILBOX, str(error)) from error


def failure_of(error: BaseException | None) -> PortError:
    """The failure one driver error stands for."""
    sqlite_code: int | None = getattr(error, "sqlite_errorcode", None)
    if sqlite_code is not None:
        return _sorted(sqlite_code & _PRIMARY_CODE, str(error), _SQLITE)
    arguments = error.args if error is not None else ()
    code = arguments[0] if arguments and isinstance(arguments[0], int) else -1
    reason = str(arguments[1]) if len(arguments) > 1 else str(error)
    return _sorted(code, f"({code}) {reason}", _MYSQL)


def _sorted(code: int, reason: str, codes: _Codes) -> PortError:
    if code in codes.refused:
        return Refused(Dependency.MAILBOX, reason)
    if code in codes.unavailable:
        return Unavailable(Dependency.MAILBOX, reason)
    if code in codes.retry_now:
        return RetryNow(f"mailbox: {reason}")
    return MessageFault(f"mailbox: {reason}")
