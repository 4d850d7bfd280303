"""A mailbox that is down, slow or cut off is an outage, and over when it is over (spec 3.3)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, create_engine, event

from msgexchange.ids import MailboxId
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.mysql import open_mysql_mailbox
from msgexchange.mailbox.sql_mailbox import SqlMailbox
from msgexchange.mailbox.sqlite import open_sqlite_mailbox
from msgexchange.ports import InsertUnknown, Mailbox, MarkOutcome, RetryNow, Unavailable
from servers.mariadb import MariadbServer
from servers.private import closed_port

COLUMNS = ColumnMap()
TABLE = """
CREATE TABLE CMINMSGS (
  CMINMSGS_ID BIGINT AUTO_INCREMENT PRIMARY KEY, MSG_TEXT LONGTEXT, RECV_TIME DATETIME(3),
  PROC_FLAG CHAR(1) DEFAULT 'N', PROC_TIME DATETIME(3)
) ENGINE=InnoDB
"""

CALLS: list[Callable[[Mailbox], Any]] = [
    lambda mailbox: mailbox.list_after(0, limit=1, id_max=None),
    lambda mailbox: mailbox.texts([MailboxId(1)], bytes_max=1),
    lambda mailbox: mailbox.insert("x"),
    lambda mailbox: mailbox.mark([MailboxId(1)]),
    lambda mailbox: mailbox.marks_after(0, limit=1),
    lambda mailbox: mailbox.newest_id(),
    lambda mailbox: mailbox.oldest_id(),
    lambda mailbox: mailbox.check(),
]


def run(url: URL, *statements: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.fixture
def mailbox(mailbox_database: URL) -> Iterator[SqlMailbox]:
    run(mailbox_database, TABLE)
    opened = open_mysql_mailbox(
        mailbox_database,
        COLUMNS,
        connections_max=2,
        connect_timeout_s=1,
        lock_timeout_s=1,
        read_timeout_s=2,
    )
    yield opened
    opened.close()


@pytest.mark.parametrize("call", CALLS)
def test_a_port_where_nobody_listens_is_an_outage(call: Callable[[Mailbox], Any]) -> None:
    mailbox = open_mysql_mailbox(f"mysql://root@127.0.0.1:{closed_port()}/aodb", COLUMNS)
    with pytest.raises(Unavailable, match="2003"):
        call(mailbox)
    mailbox.close()


@pytest.mark.mysql
def test_a_killed_server_is_an_outage_until_it_is_back(
    mailbox: SqlMailbox, mariadb_server: MariadbServer
) -> None:
    kept = mailbox.insert("x")
    mariadb_server.kill()
    try:
        for call in CALLS:
            with pytest.raises(Unavailable):
                call(mailbox)
    finally:
        mariadb_server.start()
    assert mailbox.newest_id() == kept
    assert mailbox.insert("y") > kept


@pytest.mark.mysql
def test_a_connection_that_a_restart_cut_costs_one_call(
    mailbox: SqlMailbox, mariadb_server: MariadbServer
) -> None:
    kept = mailbox.insert("x")
    mariadb_server.stop()
    mariadb_server.start()
    with pytest.raises(Unavailable):
        mailbox.insert("lost before it was sent")
    assert mailbox.newest_id() == kept


@pytest.mark.mysql
def test_a_server_that_does_not_answer_is_an_outage_within_the_timeouts(
    mailbox: SqlMailbox, mariadb_server: MariadbServer
) -> None:
    mailbox.newest_id()
    mariadb_server.pause()
    try:
        with pytest.raises(Unavailable, match="2013"):
            mailbox.newest_id()
        with pytest.raises(Unavailable):
            mailbox.newest_id()
    finally:
        mariadb_server.resume()
    assert mailbox.newest_id() == 0


@pytest.mark.mysql
def test_a_connection_lost_at_commit_leaves_the_insert_unknown(
    mailbox: SqlMailbox, mailbox_database: URL
) -> None:
    cut_connection_at(mailbox, mailbox_database, "COMMIT")
    with pytest.raises(InsertUnknown, match=r"row 1 .* may be there or not"):
        mailbox.insert("x")


@pytest.mark.mysql
def test_a_connection_lost_before_commit_leaves_no_row(
    mailbox: SqlMailbox, mailbox_database: URL
) -> None:
    cut_connection_at(mailbox, mailbox_database, "INSERT")
    with pytest.raises(Unavailable):
        mailbox.insert("x")
    event.remove(mailbox._engine, "before_cursor_execute", _cutters.pop())
    assert mailbox.newest_id() == 0


@pytest.mark.mysql
def test_a_lost_reply_to_a_mark_changes_nothing(mailbox: SqlMailbox, mailbox_database: URL) -> None:
    id_ = mailbox.insert("x")

    def lose_reply(_connection: Any, cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith("UPDATE"):
            cursor.connection._sock.close()
            raise OSError("the reply was lost")

    event.listen(mailbox._engine, "after_cursor_execute", lose_reply)
    with pytest.raises(Unavailable):
        mailbox.mark([id_])
    event.remove(mailbox._engine, "after_cursor_execute", lose_reply)
    assert mailbox.marks_after(0, limit=9) == {id_: True}
    assert mailbox.mark([id_]) == {id_: MarkOutcome.MARKED}


_cutters: list[Callable[..., None]] = []


def cut_connection_at(mailbox: SqlMailbox, url: URL, beginning: str) -> None:
    """Has the server drop the connection that is about to send such a statement."""

    def cut(_connection: Any, cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith(beginning):
            run(url, f"KILL HARD CONNECTION {cursor.connection.thread_id()}")

    event.listen(mailbox._engine, "before_cursor_execute", cut)
    _cutters.append(cut)


@pytest.mark.mysql
def test_a_row_that_another_writer_holds_is_worth_a_retry(
    mailbox: SqlMailbox, mailbox_database: URL
) -> None:
    held = mailbox.insert("x")
    engine = create_engine(mailbox_database, isolation_level="AUTOCOMMIT")
    with engine.connect() as owner:
        owner.exec_driver_sql("BEGIN")
        owner.exec_driver_sql("UPDATE CMINMSGS SET PROC_FLAG = 'E'")
        with pytest.raises(RetryNow, match="1205"):
            mailbox.mark([held])
        owner.exec_driver_sql("ROLLBACK")
    engine.dispose()


@pytest.mark.mysql
def test_more_callers_than_connections_wait_for_a_bounded_time(mailbox: SqlMailbox) -> None:
    with (
        mailbox._engine.connect(),
        mailbox._engine.connect(),
        pytest.raises(Unavailable, match="every connection is in use"),
    ):
        mailbox.newest_id()


@pytest.mark.mysql
@pytest.mark.parametrize(
    ("setting", "bad", "good", "advice"),
    [
        ("max_allowed_packet", "16777216", "83886080", "64 MiB or more"),
        ("auto_increment_increment", "3", "1", "id-step"),
        ("read_only", "1", "0", "writable server"),
    ],
)
def test_a_server_setting_that_would_hurt_is_named_with_what_to_do(
    mailbox: SqlMailbox,
    mariadb_server: MariadbServer,
    setting: str,
    bad: str,
    good: str,
    advice: str,
) -> None:
    mariadb_server.execute(f"SET GLOBAL {setting} = {bad}")
    try:
        [problem] = mailbox.check()
    finally:
        mariadb_server.execute(f"SET GLOBAL {setting} = {good}")
    assert setting.replace("_", "") in problem.replace("_", "").replace("-", "")
    assert advice in problem


@pytest.mark.mysql
def test_a_column_too_small_or_in_the_wrong_character_set_is_named(mailbox_database: URL) -> None:
    run(
        mailbox_database,
        "CREATE TABLE CMINMSGS (CMINMSGS_ID BIGINT PRIMARY KEY, MSG_TEXT TEXT CHARACTER SET gbk,"
        " RECV_TIME DATETIME(3), PROC_FLAG CHAR(1), PROC_TIME DATETIME(3))",
    )
    mailbox = open_mysql_mailbox(mailbox_database, COLUMNS)
    problems = "\n".join(mailbox.check())
    mailbox.close()
    for part in ("not an auto-increment primary key", "stored in gbk", "is text, which holds less"):
        assert part in problems


@pytest.mark.mysql
def test_a_missing_table_is_an_outage_and_is_named_by_the_check(mailbox_database: URL) -> None:
    mailbox = open_mysql_mailbox(mailbox_database, COLUMNS)
    with pytest.raises(Unavailable, match="1146"):
        mailbox.newest_id()
    [problem] = mailbox.check()
    mailbox.close()
    assert "no table CMINMSGS" in problem


@pytest.mark.mysql
def test_a_text_is_refused_rather_than_cut_short(mailbox_database: URL) -> None:
    run(mailbox_database, TABLE.replace("LONGTEXT", "VARCHAR(5)"), "SET GLOBAL sql_mode = ''")
    mailbox = open_mysql_mailbox(mailbox_database, COLUMNS)
    try:
        with pytest.raises(Exception, match="1406"):
            mailbox.insert("123456")
    finally:
        run(mailbox_database, "SET GLOBAL sql_mode = DEFAULT")
    assert mailbox.newest_id() == 0
    mailbox.close()


def test_a_sqlite_file_that_another_process_keeps_is_worth_a_retry(tmp_path: Path) -> None:
    file = tmp_path / "mailbox.sqlite"
    mailbox = open_sqlite_mailbox(file, COLUMNS, busy_timeout_s=0.05)
    engine = create_engine(f"sqlite:///{file}", isolation_level="AUTOCOMMIT")
    with engine.connect() as other:
        other.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(RetryNow):
            mailbox.insert("x")
        assert mailbox.newest_id() == 0
        other.exec_driver_sql("ROLLBACK")
    engine.dispose()
    assert mailbox.insert("x") == 1
    mailbox.close()


def test_a_sqlite_file_that_cannot_be_opened_is_an_outage(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="unable to open"):
        open_sqlite_mailbox(tmp_path / "missing" / "mailbox.sqlite", COLUMNS)


def test_a_sqlite_mailbox_has_no_schema(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="knows no schema"):
        open_sqlite_mailbox(tmp_path / "mailbox.sqlite", ColumnMap(table="aodb.CMINMSGS"))
