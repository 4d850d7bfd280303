"""What every mailbox promises, on SQLite and on MariaDB alike (spec 3.1, 3.2, 3.6)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Connection, Engine, create_engine, text

from msgexchange.clock import SystemClock
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.watermark import MailboxRow
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.mysql import open_mysql_mailbox
from msgexchange.mailbox.sqlite import open_sqlite_mailbox
from msgexchange.ports import Mailbox, MarkOutcome, MessageFault, TextMissing

COLUMNS = ColumnMap(extra={"SOURCE": "MSGX", "PRIORITY": 7})
OTHER_NAMES = ColumnMap(
    table="Order", id="Key", text="Group", received="At", flag="Mark", processed_time="When"
)
RARE = "𠮷野家 航班 ✈ 'quoted' \\ back % s :x"

OWNERS_TABLE = """
CREATE TABLE {table} (
  {id} BIGINT AUTO_INCREMENT PRIMARY KEY,
  {text} LONGTEXT CHARACTER SET utf8mb4 NULL,
  {received} DATETIME(3) NOT NULL,
  {flag} CHAR(1) DEFAULT 'N',
  {processed_time} DATETIME(3) NULL{extra}
) ENGINE=InnoDB
"""


@dataclass
class Place:
    """One kind of mailbox: how it is opened, and how its owner gets at it past the port."""

    name: str
    engine: Engine
    open: Callable[[ColumnMap], Mailbox]
    held_back: str

    def run(self, statement: str, **parameters: Any) -> Sequence[Any]:
        with self.engine.connect() as connection:
            result = connection.execute(text(statement), parameters)
            return result.all() if result.returns_rows else []

    def put_bytes(self, body: bytes) -> MailboxId:
        """A row whose text is binary."""
        id_ = self.put("")
        self.run("UPDATE CMINMSGS SET MSG_TEXT = :body WHERE CMINMSGS_ID = :id", body=body, id=id_)
        return id_

    def put(self, body: str | None, *, id_: int | None = None, flag: str | None = "N") -> MailboxId:
        """A row as the mailbox's owner writes it."""
        with self.engine.connect() as connection:
            return put(connection, body, id_=id_, flag=flag)


def put(
    connection: Connection, body: str | None, *, id_: int | None = None, flag: str | None = "N"
) -> MailboxId:
    result = connection.execute(
        text(
            "INSERT INTO CMINMSGS (CMINMSGS_ID, MSG_TEXT, RECV_TIME, PROC_FLAG, SOURCE, PRIORITY)"
            " VALUES (:id, :body, '2026-09-03 18:00:00.123', :flag, 'AODB', 1)"
        ),
        {"id": id_, "body": body, "flag": flag},
    )
    return MailboxId(id_ or result.lastrowid)


def sqlite_place(folder: Path) -> Place:
    file = folder / "mailbox.sqlite"

    def open_mailbox(columns: ColumnMap) -> Mailbox:
        return open_sqlite_mailbox(file, columns)

    return Place(
        name="sqlite",
        engine=create_engine(f"sqlite:///{file}", isolation_level="AUTOCOMMIT"),
        open=open_mailbox,
        held_back="CREATE TRIGGER held BEFORE UPDATE ON CMINMSGS WHEN OLD.PROC_FLAG = 'X'"
        " BEGIN SELECT RAISE(IGNORE); END",
    )


def mysql_place(url: URL) -> Place:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    place = Place(
        name="mysql",
        engine=engine,
        open=lambda columns: open_mysql_mailbox(url, columns),
        held_back="CREATE TRIGGER held BEFORE UPDATE ON CMINMSGS FOR EACH ROW"
        " IF OLD.PROC_FLAG = 'X' THEN"
        " SET NEW.PROC_FLAG = OLD.PROC_FLAG, NEW.PROC_TIME = OLD.PROC_TIME; END IF",
    )
    for columns, extra in (
        (COLUMNS, ", SOURCE VARCHAR(20) NOT NULL, PRIORITY INT NOT NULL"),
        (OTHER_NAMES, ""),
    ):
        quoted = {
            name: f"`{getattr(columns, name)}`"
            for name in ("table", "id", "text", "received", "flag", "processed_time")
        }
        place.run(OWNERS_TABLE.format(**quoted, extra=extra))
    return place


@pytest.fixture(params=["sqlite", pytest.param("mysql", marks=pytest.mark.mysql)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "mysql":
        made = mysql_place(request.getfixturevalue("mailbox_database"))
    else:
        made = sqlite_place(tmp_path)
    yield made
    made.engine.dispose()


@pytest.fixture
def mailbox(place: Place) -> Iterator[Mailbox]:
    opened = place.open(COLUMNS)
    yield opened
    opened.close()


def ids_after(mailbox: Mailbox, watermark: int, **bounds: Any) -> list[int]:
    bounds = {"limit": 100, "id_max": None, **bounds}
    return [row.message_id for row in mailbox.list_after(watermark, **bounds).rows]


def test_ids_and_text_lengths_come_in_id_order(mailbox: Mailbox, place: Place) -> None:
    for id_, body in ((30, "abc"), (10, "𠮷"), (20, None), (40, "")):
        place.put(body, id_=id_)
    assert list(mailbox.list_after(0, limit=10, id_max=None).rows) == [
        MailboxRow(MailboxId(10), 4),
        MailboxRow(MailboxId(20), None),
        MailboxRow(MailboxId(30), 3),
        MailboxRow(MailboxId(40), 0),
    ]


def test_a_listing_keeps_to_watermark_limit_and_greatest_id(mailbox: Mailbox, place: Place) -> None:
    for id_ in range(1, 8):
        place.put("x", id_=id_)
    assert ids_after(mailbox, 2) == [3, 4, 5, 6, 7]
    assert ids_after(mailbox, 2, limit=2) == [3, 4]
    assert ids_after(mailbox, 2, id_max=5) == [3, 4, 5]
    assert ids_after(mailbox, 7) == []


def test_marked_rows_are_listed_like_the_others(mailbox: Mailbox, place: Place) -> None:
    place.put("x", id_=1, flag="Y")
    place.put("x", id_=2, flag=None)
    assert ids_after(mailbox, 0) == [1, 2]


def test_a_listing_carries_database_time_with_rows_and_without(
    mailbox: Mailbox, place: Place
) -> None:
    before = SystemClock().now()
    empty = mailbox.list_after(0, limit=10, id_max=None)
    place.put("x")
    full = mailbox.list_after(0, limit=10, id_max=None)
    after = SystemClock().now()
    assert empty.started_at.tzinfo is UTC
    assert empty.started_at <= full.started_at
    # Same host in the tests, so the same clock; milliseconds are cut off.
    assert before - timedelta(milliseconds=1) <= empty.started_at
    assert full.started_at <= after


def test_texts_come_back_as_they_were_written(mailbox: Mailbox) -> None:
    large = "<MSG>" + "航" * 300_000 + "</MSG>"
    written = [RARE, "", "a\r\nb\tc", large]
    ids = [mailbox.insert(body) for body in written]
    assert mailbox.texts(ids, bytes_max=2_000_000) == dict(zip(ids, written, strict=True))


def test_a_text_that_cannot_be_had_says_why(mailbox: Mailbox, place: Place) -> None:
    place.put(None, id_=1)
    place.put("航" * 4, id_=2)
    place.put("a" * 11, id_=3)
    ids = [MailboxId(id_) for id_ in (1, 2, 3, 4)]
    assert mailbox.texts(ids, bytes_max=11) == {
        1: TextMissing.NO_TEXT,
        2: TextMissing.TOO_LARGE,
        3: "a" * 11,
        4: TextMissing.ROW_GONE,
    }


def test_no_ids_ask_for_nothing(mailbox: Mailbox) -> None:
    assert mailbox.texts([], bytes_max=1) == {}
    assert mailbox.mark([]) == {}


def test_an_insert_returns_the_id_it_got_and_fills_every_column(
    mailbox: Mailbox, place: Place
) -> None:
    first, second = mailbox.insert("one"), mailbox.insert(RARE)
    assert second > first
    [row] = place.run(
        "SELECT MSG_TEXT, PROC_FLAG, PROC_TIME, RECV_TIME, SOURCE, PRIORITY FROM CMINMSGS"
        " WHERE CMINMSGS_ID = :id",
        id=second,
    )
    assert (row.MSG_TEXT, row.PROC_FLAG, row.PROC_TIME) == (RARE, "N", None)
    assert (row.SOURCE, row.PRIORITY) == ("MSGX", 7)
    received = datetime.fromisoformat(str(row.RECV_TIME))
    assert abs(received.astimezone(UTC) - SystemClock().now()) < timedelta(minutes=1)


def test_a_refused_insert_is_a_message_fault_and_leaves_the_connection_clean(
    mailbox: Mailbox, place: Place
) -> None:
    place.run("CREATE UNIQUE INDEX only_one ON CMINMSGS (PRIORITY)")
    kept = mailbox.insert("one")
    with pytest.raises(MessageFault):
        mailbox.insert("two")
    assert ids_after(mailbox, 0) == [kept]


def test_a_mark_sets_flag_and_time_once(mailbox: Mailbox, place: Place) -> None:
    ids = [place.put("x", flag=flag) for flag in ("N", None, " ")]
    assert mailbox.mark(ids) == dict.fromkeys(ids, MarkOutcome.MARKED)
    rows = place.run("SELECT PROC_FLAG, PROC_TIME FROM CMINMSGS ORDER BY CMINMSGS_ID")
    assert [row.PROC_FLAG for row in rows] == ["Y", "Y", "Y"]
    assert all(row.PROC_TIME is not None for row in rows)
    place.run("UPDATE CMINMSGS SET PROC_TIME = '2001-02-03 04:05:06'")
    assert mailbox.mark(ids) == dict.fromkeys(ids, MarkOutcome.MARKED)
    again = place.run("SELECT PROC_TIME FROM CMINMSGS")
    assert {str(row.PROC_TIME)[:19] for row in again} == {"2001-02-03 04:05:06"}


def test_a_mark_says_which_rows_are_gone(mailbox: Mailbox, place: Place) -> None:
    there, marked = place.put("x"), place.put("x", flag="Y")
    gone = MailboxId(there + 500)
    assert mailbox.mark([gone, there, marked]) == {
        gone: MarkOutcome.ROW_GONE,
        there: MarkOutcome.MARKED,
        marked: MarkOutcome.MARKED,
    }


def test_a_mark_that_its_owner_holds_back_is_reported(mailbox: Mailbox, place: Place) -> None:
    theirs, ours = place.put("x", flag="X"), place.put("x")
    place.run(place.held_back)
    assert mailbox.mark([theirs, ours]) == {
        theirs: MarkOutcome.OTHER_VALUE,
        ours: MarkOutcome.MARKED,
    }


def test_an_id_named_twice_is_marked_once(mailbox: Mailbox, place: Place) -> None:
    id_ = place.put("x")
    assert mailbox.mark([id_, id_]) == {id_: MarkOutcome.MARKED}


def test_marks_are_read_back_in_id_order_and_in_pages(mailbox: Mailbox, place: Place) -> None:
    for id_, flag in ((5, "Y"), (2, None), (9, "X"), (7, "N"), (11, "Y")):
        place.put("x", id_=id_, flag=flag)
    assert list(mailbox.marks_after(2, limit=3).items()) == [(5, True), (7, False), (9, False)]
    assert mailbox.marks_after(9, limit=3) == {11: True}
    assert mailbox.marks_after(0, limit=1) == {2: False}
    assert mailbox.marks_after(11, limit=3) == {}


def test_another_processed_value_may_be_configured(place: Place) -> None:
    mailbox = place.open(ColumnMap(extra=COLUMNS.extra, processed="P"))
    id_ = mailbox.insert("x")
    mailbox.mark([id_])
    mailbox.close()
    assert [row.PROC_FLAG for row in place.run("SELECT PROC_FLAG FROM CMINMSGS")] == ["P"]


def test_oldest_and_newest_id_of_an_empty_table_are_zero(mailbox: Mailbox, place: Place) -> None:
    assert (mailbox.oldest_id(), mailbox.newest_id()) == (0, 0)
    place.put("x", id_=5)
    place.put("x", id_=9)
    assert (mailbox.oldest_id(), mailbox.newest_id()) == (5, 9)


def test_an_id_is_never_handed_out_twice(mailbox: Mailbox, place: Place) -> None:
    first = mailbox.insert("x")
    place.run("DELETE FROM CMINMSGS")
    assert mailbox.insert("y") > first


def test_each_listing_sees_what_others_committed_since(mailbox: Mailbox, place: Place) -> None:
    assert ids_after(mailbox, 0) == []
    place.put("x", id_=1)
    assert ids_after(mailbox, 0) == [1]
    place.put("y", id_=2)
    assert ids_after(mailbox, 0) == [1, 2]


def test_a_row_of_an_open_transaction_is_not_seen(mailbox: Mailbox, place: Place) -> None:
    place.put("x", id_=1)
    with place.engine.connect() as owner:
        owner.exec_driver_sql("BEGIN")
        put(owner, "y", id_=2)
        assert ids_after(mailbox, 0) == [1]
        owner.exec_driver_sql("COMMIT")
    assert ids_after(mailbox, 0) == [1, 2]


def test_names_that_are_reserved_words_are_quoted(place: Place) -> None:
    mailbox = place.open(OTHER_NAMES)
    id_ = mailbox.insert("x")
    assert mailbox.mark([id_]) == {id_: MarkOutcome.MARKED}
    assert mailbox.texts([id_], bytes_max=9) == {id_: "x"}
    assert ids_after(mailbox, 0) == [id_]
    mailbox.close()


def test_a_sound_mailbox_has_nothing_to_complain_about(mailbox: Mailbox) -> None:
    assert list(mailbox.check()) == []


def test_a_missing_column_is_named(place: Place) -> None:
    place.open(COLUMNS).close()
    mailbox = place.open(ColumnMap(flag="DONE_FLAG", extra=COLUMNS.extra))
    [problem] = mailbox.check()
    mailbox.close()
    assert "no column DONE_FLAG" in problem
    assert "mailbox.inbound" in problem


def test_marks_are_listed_page_by_page(place: Place, mailbox: Mailbox) -> None:
    ids = [place.put("a"), place.put("b", flag=None), place.put("c")]
    mailbox.mark([ids[2]])
    assert mailbox.marks_after(0, limit=2) == {ids[0]: False, ids[1]: False}
    assert mailbox.marks_after(ids[1], limit=2) == {ids[2]: True}
    assert mailbox.marks_after(ids[2], limit=2) == {}


def test_a_text_that_is_stored_as_bytes_is_read_or_named(place: Place, mailbox: Mailbox) -> None:
    if place.name == "mysql":
        place.run("ALTER TABLE CMINMSGS MODIFY MSG_TEXT LONGBLOB NULL")
    good, bad = place.put_bytes("航班".encode()), place.put_bytes(b"\xff\xfe\x00")
    texts = mailbox.texts([good, bad], bytes_max=1_000)
    assert texts == {good: "航班", bad: TextMissing.NOT_TEXT}


def test_ids_alone_are_listed_between_two_bounds(mailbox: Mailbox, place: Place) -> None:
    for id_ in (3, 5, 6, 9):
        place.put("x", id_=id_)
    assert mailbox.ids_between(4, 9, limit=10) == [5, 6, 9]
    assert mailbox.ids_between(1, 9, limit=2) == [3, 5]
    assert mailbox.ids_between(7, 8, limit=2) == []


def test_the_next_id_is_told_also_when_rows_were_deleted(mailbox: Mailbox, place: Place) -> None:
    place.put("x", id_=41)
    assert (mailbox.next_id(), mailbox.list_after(0, limit=1, id_max=None).newest) == (42, 41)
    place.run("DELETE FROM CMINMSGS")
    assert (mailbox.next_id(), mailbox.list_after(0, limit=1, id_max=None).newest) == (42, 0)


def test_another_programs_value_is_overwritten_only_when_asked(
    mailbox: Mailbox, place: Place
) -> None:
    id_ = place.put("x", flag="X")
    assert mailbox.mark([id_]) == {id_: MarkOutcome.OTHER_VALUE}
    assert [row.PROC_FLAG for row in place.run("SELECT PROC_FLAG FROM CMINMSGS")] == ["X"]
    assert mailbox.mark([id_], overwrite=True) == {id_: MarkOutcome.MARKED}
    assert mailbox.mark([id_]) == {id_: MarkOutcome.MARKED}
