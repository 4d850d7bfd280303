"""The watermark against MariaDB and PostgreSQL: nothing lost, every skip explained (spec 3.2).

``MSGEXCHANGE_SOAK_IDS`` and ``MSGEXCHANGE_SOAK_BACKLOG`` scale the two long ones up,
``MSGEXCHANGE_SOAK_LINGERING`` is the share of transactions that are held open.
"""

import os
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy import URL, create_engine, text

from fakes.intake import Intake
from msgexchange.clock import SystemClock
from msgexchange.invariants.inbox_checks import (
    every_row_is_accounted_for,
    watermark_passes_only_the_explained,
)
from msgexchange.invariants.observation import Observation
from msgexchange.lifecycle.gap import EvidenceUse, GapDecision, ScanPolicy, StepRule
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.mysql import open_mysql_mailbox
from msgexchange.mailbox.probe import MysqlGapProbe
from msgexchange.mailbox.sql_mailbox import SqlMailbox
from msgexchange.ports import Probed, ProbeUnfit
from msgexchange.store.sql_store import SqlStore
from servers.mariadb import MariadbServer
from servers.production import CMINMSGS
from servers.waiting import sleep
from servers.writers import Writers, open_insert, put

pytestmark = [pytest.mark.mysql, pytest.mark.postgres]

IDS = int(os.environ.get("MSGEXCHANGE_SOAK_IDS", "2000"))
LINGERING = float(os.environ.get("MSGEXCHANGE_SOAK_LINGERING", "0.2"))
BACKLOG = int(os.environ.get("MSGEXCHANGE_SOAK_BACKLOG", "20000"))
DELAY = timedelta(seconds=1.5)
CLOCK = SystemClock()


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


@pytest.fixture
def probe(url: URL) -> Iterator[MysqlGapProbe]:
    opened = MysqlGapProbe(url, ColumnMap())
    yield opened
    opened.close()


def scan_until(intake: Intake, done: Callable[[], bool], *, seconds: float) -> float:
    """How long it took."""
    began_s = CLOCK.monotonic()
    while not done():
        assert CLOCK.monotonic() - began_s < seconds, (intake.watermark, intake.decisions()[-9:])
        sleep(min(intake.scan.step(), 0.05))
    return CLOCK.monotonic() - began_s


def check_all(intake: Intake, committed: set[int]) -> None:
    facts = intake.store.evidence.facts()
    assert {fact.message_id for fact in facts.messages} == committed
    marks = dict.fromkeys((fact.message_id for fact in facts.messages), False)
    seen = Observation(store=facts, marks=marks, decoded={}, topics=None, drained=False)
    assert list(every_row_is_accounted_for(seen)) == []
    assert list(watermark_passes_only_the_explained(seen)) == []
    assert not [gap for gap in facts.gaps if gap.decision is GapDecision.LATE]


@pytest.mark.parametrize(
    ("stride", "rule"),
    [(1, None), (3, None), (3, StepRule(3, 1))],
    ids=["stride-1", "stride-3", "stride-3-declared"],
)
@pytest.mark.timeout(7_200)
def test_eight_writers_that_linger_and_roll_back_lose_nothing(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore, stride: int, rule: StepRule | None
) -> None:
    # Long enough that a writer which the machine holds up is not taken for a dead one.
    policy = ScanPolicy(commit_delay_max=2 * DELAY, step_rule=rule)
    intake = Intake(postgres_store, mailbox, policy=policy)
    writers = Writers(url, IDS, stride=stride, lingering=LINGERING)
    began_s = restarted_at_s = CLOCK.monotonic()
    writers.start(seed=stride)
    watermark = restarts = restarts_in_gaps = 0
    while writers.running:
        sleep(min(intake.scan.step(), 0.05))
        state = intake.store.intake.state()
        assert state.watermark >= watermark
        watermark = state.watermark
        if CLOCK.monotonic() - restarted_at_s > 0.7:
            intake.restart()
            restarts += 1
            restarts_in_gaps += any(gap.decision is GapDecision.OPEN for gap in state.ledger)
            restarted_at_s = CLOCK.monotonic()
    writers.join()
    assert writers.failures == []
    took_s = CLOCK.monotonic() - began_s
    newest = max(writers.committed)
    lag_s = scan_until(intake, lambda: intake.watermark >= newest, seconds=60)
    assert len(writers.rolled_back) > IDS * 0.01
    assert restarts_in_gaps > 0
    check_all(intake, writers.committed)
    counts = postgres_store.reads.counts()
    print(  # noqa: T201
        f"stride {stride}, declared {rule is not None}: {len(writers.committed)} committed and "
        f"{len(writers.rolled_back)} rolled back in {took_s:.0f} s, ids to {newest}, {restarts} "
        f"restarts ({restarts_in_gaps} with a gap open), {counts.permanent_ids} ids passed, "
        f"W {lag_s:.1f} s behind the last commit"
    )


def test_one_rollback_in_twenty_at_full_speed_does_not_let_w_fall_behind(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore
) -> None:
    policy = ScanPolicy(commit_delay_max=2 * DELAY)
    intake = Intake(postgres_store, mailbox, policy=policy)
    writers = Writers(url, 2 * IDS, lingering=0)
    began_s = CLOCK.monotonic()
    writers.start(seed=7)
    while writers.running:
        sleep(min(intake.scan.step(), 0.05))
    rate = 2 * IDS / (CLOCK.monotonic() - began_s)
    newest = max(writers.committed)
    lag_s = scan_until(intake, lambda: intake.watermark >= newest, seconds=60)
    print(f"{rate:.0f} rows/s, W {lag_s:.1f} s behind the last")  # noqa: T201
    assert lag_s < policy.commit_delay_max.total_seconds() + 3
    check_all(intake, writers.committed)


def test_a_dead_gap_is_passed_after_the_commit_delay_and_no_sooner(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore
) -> None:
    intake = Intake(postgres_store, mailbox, policy=ScanPolicy(commit_delay_max=DELAY))
    with open_insert(url) as (writer, _id):
        writer.rollback()
    put(url, ["behind"])
    took_s = scan_until(intake, lambda: intake.watermark == 2, seconds=10)
    assert DELAY.total_seconds() < took_s < DELAY.total_seconds() + 1.5


def test_a_writer_that_lives_is_waited_for_with_evidence(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore, probe: MysqlGapProbe
) -> None:
    policy = ScanPolicy(commit_delay_max=DELAY, evidence=EvidenceUse.EXTEND)
    intake = Intake(postgres_store, mailbox, policy=policy, probe=probe)
    with open_insert(url) as (writer, id_):
        put(url, ["behind"])
        deadline_s = CLOCK.monotonic() + 3 * DELAY.total_seconds()
        while CLOCK.monotonic() < deadline_s:
            sleep(min(intake.scan.step(), 0.05))
        assert intake.watermark == 0
        assert intake.ledger()[0].why == "a living writer holds it: waited for"
        assert "gap-held" in intake.told.alerts
        writer.commit()
    scan_until(intake, lambda: intake.watermark == id_ + 1, seconds=5)
    check_all(intake, {id_, id_ + 1})


def test_early_passes_a_dead_gap_after_two_empty_probes(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore, probe: MysqlGapProbe
) -> None:
    policy = ScanPolicy(evidence=EvidenceUse.EARLY)
    intake = Intake(postgres_store, mailbox, policy=policy, probe=probe)
    with open_insert(url) as (writer, _id):
        writer.rollback()
    put(url, ["behind"])
    took_s = scan_until(intake, lambda: intake.watermark == 2, seconds=10)
    assert 3 < took_s < 6
    assert "no writer holds it" in str(intake.ledger()[0].why)


def test_a_probe_sees_a_writer_and_leaves_no_lock(url: URL, probe: MysqlGapProbe) -> None:
    with open_insert(url) as (writer, id_):
        assert probe.probe(id_, id_) is Probed.HELD
        assert probe.probe(id_ + 1, id_ + 50) is Probed.EMPTY
        # A lock left behind would make this insert wait.
        put(url, ["beside"])
        writer.rollback()
        assert probe.probe(id_, id_) is Probed.EMPTY


def test_a_probe_on_a_read_only_server_proves_nothing(
    url: URL, probe: MysqlGapProbe, mariadb_server: MariadbServer
) -> None:
    mariadb_server.execute("SET GLOBAL read_only = ON")
    try:
        with pytest.raises(ProbeUnfit, match="read-only"):
            probe.probe(1, 1)
    finally:
        mariadb_server.execute("SET GLOBAL read_only = OFF")
    assert probe.probe(1, 1) is Probed.EMPTY


def test_a_probe_needs_no_more_than_select(url: URL, mariadb_server: MariadbServer) -> None:
    mariadb_server.execute("CREATE USER looker IDENTIFIED BY 'looker'")
    opened = MysqlGapProbe(url.set(username="looker", password="looker"), ColumnMap())
    try:
        mariadb_server.execute(f"GRANT INSERT ON {url.database}.CMINMSGS TO looker")
        with pytest.raises(ProbeUnfit, match="refuses it"):
            opened.probe(1, 1)
        mariadb_server.execute(f"GRANT SELECT ON {url.database}.CMINMSGS TO looker")
        with open_insert(url) as (_writer, id_):
            assert opened.probe(id_, id_) is Probed.HELD
    finally:
        opened.close()
        mariadb_server.execute("DROP USER looker")


def test_a_long_idle_reader_holds_nothing_up(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore, probe: MysqlGapProbe
) -> None:
    policy = ScanPolicy(commit_delay_max=DELAY, evidence=EvidenceUse.EXTEND)
    intake = Intake(postgres_store, mailbox, policy=policy, probe=probe)
    put(url, ["first"])
    engine = create_engine(url)
    with engine.connect() as reader:
        reader.exec_driver_sql("SELECT * FROM CMINMSGS").all()
        with open_insert(url) as (writer, _id):
            writer.rollback()
        put(url, ["behind"])
        scan_until(intake, lambda: intake.watermark == 3, seconds=10)
    engine.dispose()


@pytest.mark.timeout(3_600)
def test_a_backlog_is_taken_in_with_flat_memory(
    url: URL, mailbox: SqlMailbox, postgres_store: SqlStore
) -> None:
    put(url, [f"<MSG>{number}</MSG>" + "x" * 500 for number in range(BACKLOG)])
    intake = Intake(postgres_store, mailbox)
    newest = mailbox.newest_id()
    scan_until(intake, lambda: intake.watermark > newest // 10, seconds=600)
    tracemalloc.start()
    began_s = CLOCK.monotonic()
    rows = newest - intake.watermark
    scan_until(intake, lambda: intake.watermark == newest, seconds=3_000)
    rate = rows / (CLOCK.monotonic() - began_s)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{rows} rows at {rate:.0f} rows/s, peak {peak >> 10} KiB")  # noqa: T201
    assert peak < 8 << 20
    assert postgres_store.reads.counts().messages == {"PENDING": BACKLOG}
