"""The airport's side of a real site, access to its own store, and the wait for all of it."""

import json
from collections.abc import Iterator
from typing import TypeAlias

import psycopg
import pymysql
import pytest
from sqlalchemy import URL

from factories import plan, status
from servers.production import Environment
from servers.site import Site

Store: TypeAlias = "psycopg.Connection[tuple[object, ...]]"


class Airport:
    """Writes the mailbox as its owner does, and knows what must come of it."""

    def __init__(self, url: URL) -> None:
        self._url = url
        self._connection = self._connect()
        self._seqn = 0
        self.last_id = 0
        self.write(plan("1", "2"))

    def write(self, text: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO CMINMSGS (MSG_TEXT, RECV_TIME) VALUES (%s, NOW(3))", (text,)
            )
            self.last_id = int(cursor.lastrowid)
        self._connection.commit()

    def change(self, count: int) -> None:
        """So many changes that all differ."""
        for _ in range(count):
            self._seqn += 1
            self.write(status(str(1 + self._seqn % 2), f"S{self._seqn}", seqn=100 + self._seqn))

    def unmarked(self) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM CMINMSGS WHERE PROC_FLAG <> 'Y'")
            row = cursor.fetchone()
        self._connection.commit()
        assert row is not None
        return int(row[0])

    def marked_at_s(self) -> dict[int, float]:
        """When each marked row was marked, in seconds since 1970, to the millisecond."""
        with self._connection.cursor() as cursor:
            cursor.execute(
                "SELECT CMINMSGS_ID, UNIX_TIMESTAMP(PROC_TIME) FROM CMINMSGS WHERE PROC_FLAG = 'Y'"
            )
            rows = cursor.fetchall()
        self._connection.commit()
        return {int(id_): float(at_s) for id_, at_s in rows}

    def reconnect(self) -> None:
        """After the mailbox was away."""
        self.close()
        self._connection = self._connect()

    def _connect(self) -> "pymysql.Connection[pymysql.cursors.Cursor]":
        url = self._url
        return pymysql.connect(
            host=url.host, port=url.port or 3306, user=url.username, database=url.database
        )

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def airport(owned_mailbox: URL) -> Iterator[Airport]:
    airport = Airport(owned_mailbox)
    yield airport
    airport.close()


@pytest.fixture
def real_settings(production_settings: Environment) -> Environment:
    return {**production_settings, "MSGEXCHANGE_SCHD__FLUSH_PERIOD": "300 ms"}


@pytest.fixture
def store_access(real_settings: Environment) -> Iterator[Store]:
    dsn = real_settings["MSGEXCHANGE_STORE__URL"].replace("postgresql+psycopg:", "postgresql:")
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def everything_is_through(site: Site, airport: Airport, *, topics: bool = True) -> None:
    site.wait_until(lambda: airport.unmarked() == 0, "every row is marked")

    def drained() -> bool:
        seen = json.loads(site.run("status", "--json").stdout)
        waiting = [line for line in seen["events"] if line["state"] == "PENDING"]
        return seen["head"] is None and not waiting and not seen["unmarked"]

    site.wait_until(drained, "every event is out")
    verified = site.run("verify", *(["--kafka"] if topics else []), "--json")
    assert json.loads(verified.stdout)["clean"], verified.stdout
