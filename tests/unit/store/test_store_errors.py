"""Driver errors by their codes: whose fault, and what the caller can do."""

import sqlite3

import psycopg
import pytest
from sqlalchemy import exc

from msgexchange.ports import (
    Dependency,
    MessageFault,
    PortError,
    Refused,
    RetryNow,
    Unavailable,
)
from msgexchange.store.errors import translated


def failure(error: BaseException) -> PortError:
    with pytest.raises(PortError) as raised, translated():
        raise error
    assert raised.value.__cause__ is error
    return raised.value


def from_postgresql(sqlstate: str) -> exc.DBAPIError:
    cause = psycopg.errors.lookup(sqlstate)("said so")
    return exc.DBAPIError("SELECT 1", {}, cause)


def from_sqlite(code: int) -> exc.DBAPIError:
    cause = sqlite3.OperationalError("said so")
    cause.sqlite_errorcode = code
    return exc.OperationalError("SELECT 1", {}, cause)


@pytest.mark.parametrize(
    "sqlstate",
    ["08006", "25006", "25P03", "28P01", "3D000", "53100", "53300", "55P03", "57014", "57P01"],
)
def test_postgresql_out_of_reach_or_out_of_means_is_a_dependency_failure(sqlstate: str) -> None:
    found = failure(from_postgresql(sqlstate))
    assert isinstance(found, Unavailable)
    assert found.dependency is Dependency.STORE
    assert sqlstate in found.reason


@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
def test_a_conflict_may_be_tried_again_at_once(sqlstate: str) -> None:
    assert isinstance(failure(from_postgresql(sqlstate)), RetryNow)


@pytest.mark.parametrize("sqlstate", ["22001", "22P05", "23505", "23514", "42P01"])
def test_every_other_sqlstate_is_the_messages_fault(sqlstate: str) -> None:
    assert isinstance(failure(from_postgresql(sqlstate)), MessageFault)


def test_a_connection_that_broke_without_an_answer_is_a_dependency_failure() -> None:
    cause = psycopg.OperationalError("server closed the connection unexpectedly")
    assert isinstance(failure(exc.OperationalError("COMMIT", {}, cause)), Unavailable)


@pytest.mark.parametrize(
    "said",
    [
        'FATAL:  password authentication failed for user "x"',
        'FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "x", database "y"',
        'FATAL:  database "nowhere" does not exist',
        'FATAL:  role "x" does not exist',
        'FATAL:  role "x" is not permitted to log in',
        "fe_sendauth: no password supplied",
    ],
)
def test_a_server_that_lets_us_not_in_has_refused(said: str) -> None:
    cause = psycopg.OperationalError(f"connection failed: {said}")
    assert isinstance(failure(exc.OperationalError("", {}, cause)), Refused)


@pytest.mark.parametrize(
    "said",
    [
        "Connection refused",
        "FATAL:  the database system is starting up",
        "FATAL:  sorry, too many clients already",
        "connection timeout expired",
        "failed to resolve host 'x': [Errno -2] Name or service not known",
    ],
)
def test_a_server_that_is_not_there_yet_has_not_refused(said: str) -> None:
    cause = psycopg.OperationalError(f"connection failed: {said}")
    found = failure(exc.OperationalError("", {}, cause))
    assert isinstance(found, Unavailable)
    assert not isinstance(found, Refused)


@pytest.mark.parametrize("sqlstate", ["28000", "28P01", "3D000"])
def test_a_refused_log_in_is_told_from_an_outage(sqlstate: str) -> None:
    assert isinstance(failure(from_postgresql(sqlstate)), Refused)


def test_a_value_the_driver_refuses_is_the_messages_fault() -> None:
    cause = psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    assert isinstance(failure(exc.DataError("INSERT", {}, cause)), MessageFault)


@pytest.mark.parametrize(
    "code",
    [
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
    ],
)
def test_a_file_that_cannot_be_written_is_a_dependency_failure(code: int) -> None:
    assert isinstance(failure(from_sqlite(code)), Unavailable)


def test_a_stale_snapshot_of_sqlite_may_be_tried_again_at_once() -> None:
    assert isinstance(failure(from_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT)), RetryNow)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_TOOBIG])
def test_every_other_code_of_sqlite_is_the_messages_fault(code: int) -> None:
    assert isinstance(failure(from_sqlite(code)), MessageFault)


def test_a_pool_that_is_used_up_is_a_dependency_failure() -> None:
    assert isinstance(failure(exc.TimeoutError("pool limit reached")), Unavailable)


def test_what_is_no_driver_error_passes_through() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError
