"""Where requests are written, on SQLite and on MariaDB alike."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Engine, create_engine, text

from msgexchange.mailbox.outbound import (
    OutColumnMap,
    open_mysql_outbound,
    open_sqlite_outbound,
)
from msgexchange.ports import Dependency, Unavailable
from msgexchange.ports.outbound import OutMailbox

COLUMNS = OutColumnMap(extra={"SITE": "PEK", "PRIORITY": 7})
RARE = "𠮷野家 'quoted' \\ back % s :x"
OWNERS = """
CREATE TABLE COUTMSGS (
  COUTMSGS_ID BIGINT AUTO_INCREMENT PRIMARY KEY,
  MSG_TEXT LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
  CREATED_TIME DATETIME(3) NOT NULL,
  SEND_FLAG CHAR(1) NOT NULL DEFAULT 'N',
  SITE VARCHAR(20) NOT NULL,
  PRIORITY INT NOT NULL
) ENGINE=InnoDB
"""


@dataclass
class Place:
    name: str
    engine: Engine
    open: Callable[[OutColumnMap], OutMailbox]

    def run(self, statement: str, **given: Any) -> Sequence[Any]:
        with self.engine.connect() as connection:
            result = connection.execute(text(statement), given)
            return result.all() if result.returns_rows else []


@pytest.fixture(params=["sqlite", pytest.param("mysql", marks=pytest.mark.mysql)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "mysql":
        url: URL = request.getfixturevalue("mailbox_database")
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        made = Place("mysql", engine, lambda columns: open_mysql_outbound(url, columns))
        made.run(OWNERS)
    else:
        file = tmp_path / "mailbox.sqlite"
        engine = create_engine(f"sqlite:///{file}", isolation_level="AUTOCOMMIT")
        made = Place("sqlite", engine, lambda columns: open_sqlite_outbound(file, columns))
    yield made
    engine.dispose()


@pytest.fixture
def out(place: Place) -> Iterator[OutMailbox]:
    opened = place.open(COLUMNS)
    yield opened
    opened.close()


def test_a_row_has_the_text_a_time_and_every_extra_column(place: Place, out: OutMailbox) -> None:
    assert out.newest_id() == 0
    id_ = out.insert(RARE)
    assert out.newest_id() == id_
    [row] = place.run("SELECT MSG_TEXT, CREATED_TIME, SEND_FLAG, SITE, PRIORITY FROM COUTMSGS")
    assert (row[0], row[2], row[3], row[4]) == (RARE, "N", "PEK", 7)
    assert row[1] is not None
    assert out.has(id_)
    assert not out.has(id_ + 1)


def test_only_exactly_our_text_above_the_id_is_ours(out: OutMailbox) -> None:
    first = out.insert("<A>x</A>")
    second = out.insert("<A>x</A>")
    out.insert("<a>X</a>")
    out.insert("<A>x</A> ")
    third = out.insert("<A>x</A>")
    assert out.ids_of("<A>x</A>", after=0) == [first, second, third]
    assert out.ids_of("<A>x</A>", after=first) == [second, third]
    assert out.ids_of("<A>y</A>", after=0) == []


def test_our_row_is_found_behind_thousands_of_the_same_length(
    place: Place, out: OutMailbox
) -> None:
    place.run(
        "INSERT INTO COUTMSGS (MSG_TEXT, CREATED_TIME, SITE, PRIORITY) "
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
        "SELECT 'other', '2026-09-03 18:00:00', 'X', 1 FROM n"
    )
    place.run(
        "INSERT INTO COUTMSGS (MSG_TEXT, CREATED_TIME, SITE, PRIORITY) "
        "SELECT a.MSG_TEXT, a.CREATED_TIME, 'X', 1 FROM COUTMSGS a"
    )
    ours = out.insert("ours!")
    assert out.ids_of("ours!", after=0) == [ours]


def test_a_good_table_raises_no_doubt_and_a_missing_column_does(
    place: Place, out: OutMailbox
) -> None:
    assert out.check() == []
    other = place.open(OutColumnMap(text="BODY"))
    assert any("no column BODY" in doubt for doubt in other.check())
    other.close()


@pytest.mark.mysql
def test_what_the_owner_wants_filled_is_told(mailbox_database: URL) -> None:
    engine = create_engine(mailbox_database, isolation_level="AUTOCOMMIT")
    out = open_mysql_outbound(mailbox_database, OutColumnMap())
    assert "no table COUTMSGS" in out.check()[0]
    with engine.connect() as connection:
        connection.execute(text(OWNERS))
    told = " ".join(out.check())
    assert "COUTMSGS.SITE must be filled" in told
    assert "COUTMSGS.PRIORITY must be filled" in told
    assert "SEND_FLAG must" not in told
    out.close()
    engine.dispose()


def test_a_server_that_is_not_there_is_an_outage() -> None:
    out = open_mysql_outbound("mysql://nobody@127.0.0.1:9/none", OutColumnMap())
    with pytest.raises(Unavailable) as outage:
        out.newest_id()
    assert outage.value.dependency is Dependency.MAILBOX
    out.close()
