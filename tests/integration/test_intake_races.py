"""Writers and callers that commit at the worst moment, on MariaDB and PostgreSQL (spec 3.2)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import URL, Engine, create_engine, event, text

from fakes.intake import Intake
from fakes.steps import Told
from msgexchange.clock import SystemClock
from msgexchange.ids import MailboxId
from msgexchange.invariants.inbox_checks import (
    every_row_is_accounted_for,
    watermark_passes_only_the_explained,
)
from msgexchange.invariants.observation import Observation
from msgexchange.lifecycle.gap import ScanPolicy
from msgexchange.lifecycle.states import MessageState
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.mysql import open_mysql_mailbox
from msgexchange.mailbox.sql_mailbox import SqlMailbox
from msgexchange.pipeline.entry import Entry
from msgexchange.store.sql_store import SqlStore
from servers.production import CMINMSGS
from servers.waiting import sleep
from servers.writers import open_insert, put

pytestmark = [pytest.mark.mysql, pytest.mark.postgres]

DELAY = timedelta(milliseconds=50)
MINUTES = timedelta(minutes=2)
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def url(mailbox_database: URL) -> URL:
    engine = create_engine(mailbox_database)
    with engine.begin() as connection:
        connection.execute(text(CMINMSGS))
    engine.dispose()
    return mailbox_database


@pytest.fixture
def mailbox(url: URL) -> Iterator[SqlMailbox]:
    opened = open_mysql_mailbox(url, ColumnMap())
    yield opened
    opened.close()


def intake_of(store: SqlStore, mailbox: SqlMailbox) -> Intake:
    return Intake(store, mailbox, policy=ScanPolicy(commit_delay_max=DELAY))


def entry_of(store: SqlStore, mailbox: SqlMailbox, told: Told) -> Entry:
    return Entry(
        mailbox=mailbox,
        store=store.intake,
        clock=SystemClock(),
        telemetry=told,
        wake_inbox=lambda: None,
    )


@contextmanager
def before_each_statement(do: Callable[[Any, str], None], *engines: Engine) -> Iterator[None]:
    """``do`` gets the driver's cursor and the statement that is about to be sent."""

    def hear(_connection: Any, cursor: Any, statement: str, *_rest: Any) -> None:
        do(cursor, statement)

    for engine in engines:
        event.listen(engine, "before_cursor_execute", hear)
    try:
        yield
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", hear)


@dataclass
class Moment:
    """Does something once, when so many statements have been sent."""

    after: int
    do: Callable[[], None]
    sent: int = 0
    reached: bool = False

    def hear(self, _cursor: Any, _statement: str) -> None:
        if self.sent == self.after:
            self.reached = True
            self.do()
        self.sent += 1


def pass_gap(intake: Intake) -> None:
    intake.scan.step()
    sleep(2 * DELAY.total_seconds())
    intake.scan.step()


@pytest.mark.timeout(300)
def test_a_commit_between_any_two_of_our_statements_loses_nothing(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore
) -> None:
    """From the first sight of the gap until long after it was passed."""
    engines = (mailbox._engine, postgres_store.engine)
    intake = intake_of(postgres_store, mailbox)
    committed: set[MailboxId] = set()
    at = 0
    reached = True
    while reached:
        with open_insert(url) as (writer, id_):
            put(url, ["behind"])
            intake = intake_of(postgres_store, mailbox)
            moment = Moment(at, writer.commit)
            with before_each_statement(moment.hear, *engines):
                pass_gap(intake)
                intake.scan.step()
                intake.watch_later(MINUTES)
            reached = moment.reached
            writer.commit()
        committed |= {MailboxId(id_), MailboxId(id_ + 1)}
        intake.watch_later(2 * MINUTES)
        assert intake.watermark == id_ + 1
        assert set(intake.states()) == committed, f"commit before statement {at + 1}"
        at += 1
    states = list(intake.states().values())
    # Some came in time, some were found late: the commit moved over the decision.
    late = states.count(MessageState.DEAD)
    assert 3 < late < at - 3
    facts = postgres_store.evidence.facts()
    seen = Observation(
        store=facts, marks=dict.fromkeys(committed, False), decoded={}, topics=None, drained=False
    )
    assert list(every_row_is_accounted_for(seen)) == []
    assert list(watermark_passes_only_the_explained(seen)) == []


def test_without_evidence_a_held_writer_is_passed_after_the_delay_and_its_row_quarantined(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore
) -> None:
    delay_s = 1.0
    policy = ScanPolicy(commit_delay_max=timedelta(seconds=delay_s))
    intake = Intake(postgres_store, mailbox, policy=policy)
    clock = SystemClock()
    with open_insert(url) as (writer, id_):
        put(url, ["behind"])
        intake.scan.step()
        seen_at_s = clock.monotonic()
        while intake.watermark == 0:
            assert clock.monotonic() - seen_at_s < delay_s + 5
            before_s = clock.monotonic()
            sleep(min(intake.scan.step(), 0.05))
        assert before_s - seen_at_s > delay_s - 0.1
        writer.commit()
    intake.scan.step()
    assert set(intake.states()) == {id_ + 1}
    intake.watch_later(MINUTES)
    assert intake.states() == {id_: MessageState.DEAD, id_ + 1: MessageState.PENDING}


def test_a_row_that_is_received_above_w_waits_for_its_turn(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore
) -> None:
    intake = intake_of(postgres_store, mailbox)
    with open_insert(url) as (writer, id_):
        received = entry_of(postgres_store, mailbox, Told()).receive("<MSG/>", TRACEPARENT)
        assert (received, intake.states()) == (id_ + 1, {received: MessageState.PENDING})
        intake.scan.step()
        assert (intake.watermark, postgres_store.pump.heads(9)) == (0, [])
        writer.commit()
    intake.scan.step()
    assert [head.message_id for head in postgres_store.pump.heads(9)] == [id_, received]


def test_a_row_that_is_received_below_w_is_left_to_the_late_watch(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore
) -> None:
    intake = intake_of(postgres_store, mailbox)
    passed: list[int] = []

    def hold_up(_cursor: Any, statement: str) -> None:
        if statement == "COMMIT" and not passed:
            passed.append(1)
            put(url, ["behind"])
            pass_gap(intake)

    with before_each_statement(hold_up, mailbox._engine):
        received = entry_of(postgres_store, mailbox, Told()).receive("<MSG/>", None)
    assert (received, intake.watermark, set(intake.states())) == (1, 2, {2})
    intake.watch_later(MINUTES)
    assert intake.states()[MailboxId(1)] is MessageState.DEAD


def test_a_row_whose_enqueue_failed_is_taken_in_by_the_scan(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore
) -> None:
    intake, told = intake_of(postgres_store, mailbox), Told()
    killed: list[int] = []

    def kill(cursor: Any, _statement: str) -> None:
        if not killed:
            killed.append(cursor.connection.info.backend_pid)
            target = postgres_store.engine.url.set(drivername="postgresql")
            with psycopg.connect(target.render_as_string(hide_password=False)) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", killed)

    with before_each_statement(kill, postgres_store.engine):
        received = entry_of(postgres_store, mailbox, told).receive("<MSG/>", None)
    assert killed
    assert intake.states() == {}
    intake.scan.step()
    assert intake.states() == {received: MessageState.PENDING}
