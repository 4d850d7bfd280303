"""Scan, late watch, halt and marks over a real store and a mailbox file, step by step."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, text

from fakes.intake import Intake, ScriptedProbe, TurnedClock, lead
from fakes.steps import Scripted, Told, fails, pause
from msgexchange.ids import MailboxId
from msgexchange.invariants.inbox_checks import (
    every_row_is_accounted_for,
    terminal_in_id_order,
    watermark_passes_only_the_explained,
)
from msgexchange.invariants.observation import Observation
from msgexchange.lifecycle.gap import EvidenceUse, ScanPolicy, StepRule
from msgexchange.lifecycle.states import MessageState
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.sqlite import SqliteMailbox, open_sqlite_mailbox
from msgexchange.pipeline.accept_restart import RestartRefused, accept_restart
from msgexchange.pipeline.backfill import BackfillRules, BackfillSweep
from msgexchange.pipeline.jobs import Job, Jobs
from msgexchange.ports import Acceptance, Dependency, LetterQuery, Probed, ProbeUnfit, Unavailable
from msgexchange.store.sql_store import SqlStore
from servers.waiting import sleep

QUICK = ScanPolicy(commit_delay_max=timedelta(milliseconds=50), filled_kept_from=timedelta())
MINUTES = timedelta(minutes=2)


class Owner:
    """The mailbox's owner, past the port."""

    def __init__(self, file: Path) -> None:
        self.engine = create_engine(f"sqlite:///{file}", isolation_level="AUTOCOMMIT")

    def run(self, statement: str) -> None:
        with self.engine.connect() as connection:
            connection.execute(text(statement))

    def put(self, *ids: int) -> None:
        for id_ in ids:
            columns = "CMINMSGS_ID, MSG_TEXT, PROC_FLAG"
            self.run(f"INSERT INTO CMINMSGS ({columns}) VALUES ({id_}, 'm{id_}', 'N')")

    def flag(self, id_: int) -> str:
        with self.engine.connect() as connection:
            query = text(f"SELECT PROC_FLAG FROM CMINMSGS WHERE CMINMSGS_ID = {id_}")
            return str(connection.execute(query).scalar_one())


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[SqliteMailbox]:
    opened = open_sqlite_mailbox(tmp_path / "mailbox.sqlite", ColumnMap())
    yield opened
    opened.close()


@pytest.fixture
def owner(tmp_path: Path, mailbox: SqliteMailbox) -> Iterator[Owner]:
    made = Owner(tmp_path / "mailbox.sqlite")
    yield made
    made.engine.dispose()


def passed_gap(intake: Intake) -> None:
    """Two scans, with the commit delay between them."""
    intake.scan.step()
    sleep(0.06)
    intake.scan.step()


def check(intake: Intake) -> None:
    marks = intake.mailbox.marks_after(0, limit=10_000)
    seen = Observation(
        store=intake.store.evidence.facts(), marks=marks, decoded={}, topics=None, drained=False
    )
    for rule in (
        every_row_is_accounted_for,
        watermark_passes_only_the_explained,
        terminal_in_id_order,
    ):
        assert list(rule(seen)) == []


def test_a_gap_survives_restarts_with_its_first_sight(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox, policy=QUICK)
    owner.put(1, 3)
    intake.scan.step()
    first = intake.ledger()[0].first_seen
    intake.restart()
    intake.scan.step()
    assert [(gap.lo, gap.first_seen) for gap in intake.ledger()] == [(2, first)]
    sleep(0.06)
    intake.restart()
    intake.scan.step()
    assert (intake.watermark, intake.decisions()) == (3, [(2, 2, "PERMANENT")])
    check(intake)


def test_a_scan_reads_a_long_ledger_once_and_writes_it_in_a_constant_number_of_statements(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox, policy=QUICK, claim=1_000)
    owner.put(*range(2, 400, 2))
    sent = [statements_of_a_scan(intake)]
    assert len(intake.ledger()) == 199
    sleep(0.06)
    sent.append(statements_of_a_scan(intake))
    assert (intake.watermark, len(intake.ledger())) == (398, 199)
    owner.put(400)
    sent.append(statements_of_a_scan(intake))
    sent.append(statements_of_a_scan(intake))
    for statements in sent:
        assert len([one for one in statements if "FROM inbox_gap" in one and "SELECT" in one]) == 1
        assert len(statements) < 20


def statements_of_a_scan(intake: Intake) -> list[str]:
    sent: list[str] = []

    def hear(*args: Any) -> None:
        sent.append(args[2])

    engine = intake.store.engine
    event.listen(engine, "before_cursor_execute", hear)
    try:
        intake.scan.step()
    finally:
        event.remove(engine, "before_cursor_execute", hear)
    return sent


def test_gaps_behind_more_rows_than_a_scan_takes_in_age_with_the_first(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox, policy=QUICK, claim=5)
    owner.put(2, *range(3, 40), 41, *range(42, 80), 81)
    intake.scan.step()
    intake.scan.step()
    assert intake.decisions() == [(1, 1, "OPEN"), (40, 40, "OPEN"), (80, 80, "OPEN")]
    # A little more than a second later the look beyond is due again, and all three are old.
    intake.clock.ahead += timedelta(seconds=1.5)
    sleep(0.06)
    intake.scan.step()
    assert [decision for _, _, decision in intake.decisions()] == ["PERMANENT"] * 3


def test_a_late_row_is_quarantined_with_its_text_and_recorded(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox, policy=QUICK)
    owner.put(1, 5)
    passed_gap(intake)
    owner.put(3)
    assert intake.watch.step() == 60
    assert intake.states().keys() == {1, 5}
    intake.watch_later(MINUTES)
    assert intake.states()[MailboxId(3)] is MessageState.DEAD
    assert intake.decisions() == [(2, 2, "PERMANENT"), (3, 3, "LATE"), (4, 4, "PERMANENT")]
    [letter] = memory_store.letters.find(LetterQuery(limit=9))
    assert (letter.error_class, letter.text_kept) == ("LATE", True)
    assert "late-arrival" in intake.told.alerts
    counts = memory_store.reads.counts()
    assert (counts.late, counts.permanent_ids) == (1, 2)
    assert intake.watch.step() == 60
    check(intake)


def test_a_late_row_may_be_processed_by_policy(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox, policy=QUICK, dies=False)
    owner.put(2)
    passed_gap(intake)
    owner.put(1)
    intake.watch_later(MINUTES)
    assert intake.states()[MailboxId(1)] is MessageState.PENDING
    assert [(head.message_id, head.text_bytes) for head in memory_store.pump.heads(9)] == [
        (1, 2),
        (2, 2),
    ]
    check(intake)


def test_an_emptied_mailbox_whose_ids_go_on_growing_is_no_reason_to_halt(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox)
    owner.put(1, 2)
    intake.scan.step()
    owner.run("DELETE FROM CMINMSGS")
    intake.restart()
    intake.scan.step()
    mailbox.insert("x")
    intake.scan.step()
    assert not intake.halted
    assert intake.watermark == 3


def test_ids_that_go_back_halt_intake_until_an_operator_accepts(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox)
    owner.put(*range(1, 9))
    intake.scan.step()
    owner.run("DELETE FROM CMINMSGS WHERE CMINMSGS_ID > 5")
    owner.run("UPDATE sqlite_sequence SET seq = 5")
    intake.scan.step()
    intake.scan.step()
    assert "next mailbox id is 6" in str(intake.halted)
    assert "intake-halted" in intake.told.alerts
    owner.put(9)
    intake.restart()
    intake.scan.step()
    assert intake.watermark == 8
    acceptance = Acceptance(by="op", reason="restored", at=intake.clock.now())
    owner.run("UPDATE sqlite_sequence SET seq = 7")
    with pytest.raises(RestartRefused, match="AUTO_INCREMENT to 9"):
        accept_restart(memory_store.intake, memory_store.gaps, mailbox, acceptance)
    owner.run("UPDATE sqlite_sequence SET seq = 9")
    assert accept_restart(memory_store.intake, memory_store.gaps, mailbox, acceptance) == 0
    intake.scan.step()
    assert not intake.store.intake.state().halted
    assert intake.watermark == 9


def test_an_unknown_row_below_w_halts_and_is_quarantined_once_accepted(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox)
    memory_store.intake.begin_after(2, by="test", now=intake.clock.now())
    owner.put(1, 2, 3, 4, 5, 6)
    intake.scan.step()
    with memory_store.engine.begin() as connection:
        connection.execute(text("DELETE FROM proc_state WHERE msg_id IN (4, 5)"))
    intake.restart()
    intake.scan.step()
    assert "2 mailbox rows below W=6" in str(intake.halted)
    acceptance = Acceptance(by="op", reason="restored", at=intake.clock.now())
    assert accept_restart(memory_store.intake, memory_store.gaps, mailbox, acceptance) == 2
    with pytest.raises(RestartRefused, match="not halted"):
        accept_restart(memory_store.intake, memory_store.gaps, mailbox, acceptance)
    intake.restart()
    intake.scan.step()
    assert not intake.halted
    intake.watch.step()
    states = intake.states()
    assert [states[MailboxId(id_)] for id_ in (4, 5)] == [MessageState.DEAD] * 2


def test_unread_rows_that_were_purged_are_told(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox, policy=QUICK)
    owner.put(1)
    intake.scan.step()
    owner.put(2, 3, 4)
    owner.run("DELETE FROM CMINMSGS WHERE CMINMSGS_ID < 4")
    passed_gap(intake)
    assert intake.watermark == 4
    assert "unread-rows-purged" in intake.told.alerts


def test_one_row_off_the_declared_step_ends_the_rule_for_good(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    policy = ScanPolicy(step_rule=StepRule(3, 1))
    intake = Intake(memory_store, mailbox, policy=policy)
    owner.put(1, 4, 7)
    intake.scan.step()
    assert (intake.watermark, intake.decisions()) == (7, [(-1, 9, "PERMANENT")])
    check(intake)
    owner.put(9, 10)
    intake.scan.step()
    assert "id-step-disproved" in intake.told.alerts
    intake.restart()
    intake.scan.step()
    assert intake.watermark == 7
    assert (8, 8, "OPEN") in intake.decisions()
    check(intake)


def test_a_row_late_off_the_declared_step_is_found_below_w(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox, policy=ScanPolicy(step_rule=StepRule(3, 1)))
    owner.put(1, 4, 7)
    intake.scan.step()
    owner.put(5)
    intake.watch_later(MINUTES)
    assert intake.states()[MailboxId(5)] is MessageState.DEAD
    assert "id-step-disproved" in intake.told.alerts
    assert memory_store.intake.state().step_rule_off
    check(intake)


def test_a_probe_that_proves_nothing_is_told_once_and_left_alone(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    probe = ScriptedProbe(ProbeUnfit("it is a replica"))
    policy = ScanPolicy(commit_delay_max=timedelta(milliseconds=50), evidence=EvidenceUse.EXTEND)
    intake = Intake(memory_store, mailbox, policy=policy, probe=probe)
    owner.put(2)
    passed_gap(intake)
    assert (intake.watermark, len(probe.asked)) == (2, 1)
    assert intake.told.alerts.count("gap-evidence-off") == 1


def test_a_held_gap_waits_and_is_told_once(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    probe = ScriptedProbe(Probed.HELD)
    policy = ScanPolicy(commit_delay_max=timedelta(milliseconds=50), evidence=EvidenceUse.EXTEND)
    intake = Intake(memory_store, mailbox, policy=policy, probe=probe)
    owner.put(2)
    passed_gap(intake)
    intake.clock.ahead += timedelta(seconds=1.5)
    intake.scan.step()
    assert (intake.watermark, len(probe.asked)) == (0, 2)
    assert intake.ledger()[0].why == "a living writer holds it: waited for"
    assert intake.told.alerts.count("gap-held") == 1
    probe.answer = Probed.EMPTY
    intake.clock.ahead += timedelta(seconds=1.5)
    intake.scan.step()
    assert intake.watermark == 2


def test_a_database_clock_that_jumps_restarts_the_ages(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox, policy=QUICK)
    owner.put(2)
    intake.scan.step()
    first = intake.ledger()[0].first_seen
    sleep(0.06)
    # To our monotonic clock the database's has just been set back by ten seconds.
    intake.clock.ahead += timedelta(seconds=10)
    intake.scan.step()
    assert intake.watermark == 0
    assert intake.ledger()[0].first_seen > first
    assert intake.told.alerts == ["mailbox-clock-jumped"]


def test_a_foreign_mark_is_respected_until_the_mark_is_overdue(
    memory_store: SqlStore, mailbox: SqliteMailbox, owner: Owner
) -> None:
    intake = Intake(memory_store, mailbox, policy=QUICK)
    owner.put(2)
    passed_gap(intake)
    owner.put(1)
    intake.watch_later(MINUTES)
    owner.run("UPDATE CMINMSGS SET PROC_FLAG = 'X' WHERE CMINMSGS_ID = 1")
    sweep = BackfillSweep(
        store=memory_store.backfill,
        mailbox=mailbox,
        clock=intake.clock,
        fence=lead(memory_store),
        rules=BackfillRules(),
        telemetry=intake.told,
    )
    sweep.step()
    assert owner.flag(1) == "X"
    assert "mark-other-value" in intake.told.alerts
    intake.clock.ahead += timedelta(hours=25)
    sweep.step()
    assert owner.flag(1) == "Y"
    assert "mark-overdue" in intake.told.alerts
    assert memory_store.reads.counts().unmarked == 0
    assert owner.flag(2) == "N"


def test_jobs_take_turns_and_an_outage_of_one_holds_up_no_other() -> None:
    turned = TurnedClock()
    busy, idle = Scripted(pause(0)), Scripted(pause(60))
    down = Scripted(fails(Unavailable(Dependency.MAILBOX, "down")))
    jobs = Jobs([Job("busy", busy), Job("idle", idle), Job("down", down)], turned, Told())
    for _ in range(12):
        jobs.step()
    assert (idle.turns, down.turns) == (1, 1)
    assert busy.turns == 10
    turned.ahead += timedelta(seconds=61)
    for _ in range(3):
        jobs.step()
    assert (idle.turns, down.turns) == (2, 2)
