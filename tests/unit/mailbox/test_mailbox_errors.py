"""Whom a driver's error charges (spec 3.3)."""

import sqlite3

import pymysql
import pytest
from sqlalchemy import exc

from msgexchange.mailbox.errors import MYSQL_RETRY_NOW, MYSQL_UNAVAILABLE, failure_of, translated
from msgexchange.ports import Dependency, MessageFault, Refused, RetryNow, Unavailable


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (2002, "socket"),
        (2003, "refused"),
        (2006, "gone away"),
        (2013, "lost"),
        (1040, "too many connections"),
        (1045, "password refused"),
        (1053, "shutting down"),
        (1021, "disk full"),
        (1114, "table full"),
        (1290, "read-only"),
        (1836, "read-only mode"),
        (1146, "no such table"),
        (3024, "out of time"),
    ],
)
def test_an_outage_of_the_mailbox_is_nobodys_fault(code: int, name: str) -> None:
    failure = failure_of(pymysql.err.OperationalError(code, name))
    assert isinstance(failure, Unavailable)
    assert failure.dependency is Dependency.MAILBOX
    assert failure.reason == f"({code}) {name}"


@pytest.mark.parametrize("code", [1205, 1213])
def test_deadlock_and_lock_wait_may_be_tried_again_now(code: int) -> None:
    assert isinstance(failure_of(pymysql.err.OperationalError(code, "x")), RetryNow)


@pytest.mark.parametrize("code", [1062, 1064, 1153, 1264, 1364, 1366, 1406])
def test_everything_else_is_the_messages_fault(code: int) -> None:
    assert isinstance(failure_of(pymysql.err.DataError(code, "x")), MessageFault)


def test_an_error_without_a_code_is_not_taken_for_an_outage() -> None:
    assert isinstance(failure_of(pymysql.err.ProgrammingError("no cursor")), MessageFault)


def test_no_code_stands_in_two_tables() -> None:
    assert not MYSQL_UNAVAILABLE & MYSQL_RETRY_NOW


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("SQLITE_FULL", Unavailable),
        ("SQLITE_IOERR_WRITE", Unavailable),
        ("SQLITE_READONLY_DBMOVED", Refused),
        ("SQLITE_CANTOPEN", Refused),
        ("SQLITE_BUSY_SNAPSHOT", RetryNow),
        ("SQLITE_LOCKED", RetryNow),
        ("SQLITE_CONSTRAINT_UNIQUE", MessageFault),
        ("SQLITE_TOOBIG", MessageFault),
    ],
)
def test_sqlite_errors_are_sorted_by_their_primary_code(
    name: str, failure: type[Exception]
) -> None:
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = getattr(sqlite3, name)
    assert type(failure_of(error)) is failure


def test_a_used_up_pool_is_an_outage() -> None:
    with pytest.raises(Unavailable, match="every connection is in use"), translated():
        raise exc.TimeoutError("QueuePool limit")
