"""Where intake begins on a mailbox with rows, and what commits below that point afterwards."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import URL, create_engine, text

from fakes.intake import Intake
from msgexchange.clock import SystemClock
from msgexchange.ids import MailboxId
from msgexchange.invariants.inbox_checks import watermark_passes_only_the_explained
from msgexchange.invariants.observation import Observation
from msgexchange.lifecycle.gap import ScanPolicy, StepRule
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.mysql import open_mysql_mailbox
from msgexchange.mailbox.sql_mailbox import SqlMailbox
from msgexchange.pipeline.first_start import SIGHT_IDS, StartAfterMissing, begin_intake
from msgexchange.store.sql_store import SqlStore
from servers.production import CMINMSGS
from servers.writers import open_insert, put

pytestmark = pytest.mark.mysql

CLOCK = SystemClock()
MINUTES = timedelta(minutes=2)


@pytest.fixture
def url(mailbox_database: URL) -> URL:
    run(mailbox_database, CMINMSGS)
    return mailbox_database


@pytest.fixture
def mailbox(url: URL) -> Iterator[SqlMailbox]:
    opened = open_mysql_mailbox(url, ColumnMap())
    yield opened
    opened.close()


def run(url: URL, statement: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


def begin(
    store: SqlStore, mailbox: SqlMailbox, start_after: str | None, rule: StepRule | None = None
) -> None:
    begin_intake(store.intake, mailbox, start_after=start_after, clock=CLOCK, step_rule=rule)


@pytest.mark.parametrize(
    ("start_after", "watermark", "held", "taken"),
    [
        ("oldest", 1, 1, {2, 3, 4, 5, 6}),
        ("newest", 5, 4, {6}),
        ("4", 4, 3, {5, 6}),
        ("3", 3, 3, {4, 5, 6}),
    ],
)
def test_a_row_that_commits_below_the_first_w_is_found_and_never_applied_on_its_own(
    url: URL,
    mailbox: SqlMailbox,
    memory_store: SqlStore,
    start_after: str,
    watermark: int,
    held: int,
    taken: set[int],
) -> None:
    for _ in range(held - 1):
        put(url, ["before"])
    with open_insert(url) as (writer, id_):
        assert id_ == held
        for _ in range(5 - held):
            put(url, ["behind"])
        begin(memory_store, mailbox, start_after)
        assert memory_store.intake.state().watermark == watermark
        intake = Intake(memory_store, mailbox)
        put(url, ["new"])
        intake.scan.step()
        assert set(intake.states()) == taken
        writer.commit()
    intake.restart()
    intake.scan.step()
    assert not intake.halted
    assert set(intake.states()) == taken
    assert intake.decisions() == [(held, held, "PERMANENT")]
    intake.watch_later(MINUTES)
    assert intake.states()[MailboxId(held)] is MessageState.DEAD
    assert set(intake.states()) == taken | {held}
    assert intake.decisions() == [(held, held, "LATE")]
    assert "late-arrival" in intake.told.alerts
    message = memory_store.reads.message(MailboxId(held))
    assert message is not None
    assert message.error_class is ErrorClass.LATE


def test_rows_that_were_there_below_the_first_w_are_passed_by(
    url: URL, mailbox: SqlMailbox, memory_store: SqlStore
) -> None:
    put(url, ["a", "b", "c", "d"])
    begin(memory_store, mailbox, "3")
    intake = Intake(memory_store, mailbox)
    intake.scan.step()
    intake.watch_later(MINUTES)
    assert set(intake.states()) == {4}
    assert intake.decisions() == []
    seen = Observation(
        store=memory_store.evidence.facts(), marks={}, decoded={}, topics=None, drained=False
    )
    assert list(watermark_passes_only_the_explained(seen)) == []


def test_what_was_purged_long_before_the_start_costs_one_ledger_row(
    url: URL, mailbox: SqlMailbox, memory_store: SqlStore
) -> None:
    run(url, "ALTER TABLE CMINMSGS AUTO_INCREMENT = 900000")
    put(url, ["a", "b"])
    begin(memory_store, mailbox, "oldest")
    intake = Intake(memory_store, mailbox, policy=ScanPolicy())
    intake.scan.step()
    assert set(intake.states()) == {900_000, 900_001}
    assert intake.decisions() == [(900_000 - SIGHT_IDS, 899_999, "PERMANENT")]


def test_ids_off_the_declared_step_are_not_looked_for_below_the_first_w(
    url: URL, mailbox: SqlMailbox, memory_store: SqlStore
) -> None:
    for id_ in (1, 4, 10, 13):
        run(url, f"INSERT INTO CMINMSGS (CMINMSGS_ID, RECV_TIME) VALUES ({id_}, NOW(3))")
    begin(memory_store, mailbox, "newest", StepRule(3, 1))
    assert Intake(memory_store, mailbox).decisions() == [(7, 7, "PERMANENT")]


def test_an_empty_mailbox_is_begun_at_its_first_id(
    url: URL, mailbox: SqlMailbox, memory_store: SqlStore
) -> None:
    begin(memory_store, mailbox, "newest")
    put(url, ["first"])
    intake = Intake(memory_store, mailbox)
    intake.scan.step()
    assert (set(intake.states()), intake.decisions()) == ({1}, [])


def test_a_first_start_says_what_it_must_be_told(
    url: URL, mailbox: SqlMailbox, memory_store: SqlStore
) -> None:
    put(url, ["a", "b"])
    with pytest.raises(StartAfterMissing, match=r"oldest \(1\) or newest \(2\)"):
        begin(memory_store, mailbox, None)
    begin(memory_store, mailbox, "1")
    begin(memory_store, mailbox, "2")
    begin(memory_store, mailbox, None)
    assert memory_store.intake.state().watermark == 1
