"""What every own store promises of gaps that W has passed, and of halted intake (spec 3.2)."""

from datetime import datetime, timedelta

import pytest
from store_builders import lead, scan

from factories import T0
from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.gap import Gap, GapDecision
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import Acceptance, Fenced, LateRow, LetterQuery
from msgexchange.store.sql_store import SqlStore


def permanent(lo: int, hi: int, *, look_s: float = 60, step: int = 1) -> Gap:
    return Gap(
        lo=lo,
        hi=hi,
        step=step,
        first_seen=T0,
        decision=GapDecision.PERMANENT,
        decided_at=T0,
        why="still missing",
        next_look_at=T0 + timedelta(seconds=look_s),
    )


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def ledgered(store: SqlStore, watermark: int, taken: tuple[int, ...], *gaps: Gap) -> Fence:
    with store.intake.transaction(None) as transaction:
        transaction.apply(scan(taken, watermark, written=gaps), now=T0)
    return lead(store)


def late(id_: int, text: str | None = "late") -> LateRow:
    size = None if text is None else len(text)
    return LateRow(message_id=MailboxId(id_), text_bytes=size, text=text, error="came late")


def test_passed_gaps_are_due_when_their_time_has_come(store: SqlStore) -> None:
    early, late_, above = permanent(2, 2), permanent(4, 4, look_s=90), permanent(9, 9)
    growing = permanent(6, 9, step=3)
    ledgered(store, 7, (1, 3, 5, 7), early, late_, above, growing)
    assert store.gaps.due_for_look(now=at(59), limit=9) == []
    assert store.gaps.due_for_look(now=at(60), limit=9) == [early, growing]
    assert store.gaps.due_for_look(now=at(90), limit=9) == [early, late_, growing]


@pytest.mark.parametrize("marks", [True, False])
def test_a_late_row_dies_with_its_text_and_its_place_in_the_ledger(
    store: SqlStore, marks: bool
) -> None:
    gap = permanent(2, 3)
    fence = ledgered(store, 4, (1, 4), gap)
    rest = permanent(3, 3, look_s=200)
    came = Gap(lo=2, hi=2, first_seen=T0, decision=GapDecision.LATE, decided_at=at(70))
    for _ in range(2):
        store.gaps.record_looks(
            fence,
            looked=[gap],
            written=[came, rest],
            late=[late(2)],
            dies=True,
            marks=marks,
            now=at(70),
        )
    assert list(store.evidence.facts().gaps) == [came, rest]
    message = store.reads.message(MailboxId(2))
    assert message is not None
    assert (message.state, message.error_class) == (MessageState.DEAD, ErrorClass.LATE)
    assert [letter.text_kept for letter in store.letters.find(LetterQuery(limit=9))] == [True]
    assert store.reads.counts().unmarked == int(marks)
    assert store.reads.gaps(every=False, limit=9) == [came]


def test_a_late_row_that_may_be_processed_waits_at_its_place(store: SqlStore) -> None:
    gap = permanent(2, 2)
    fence = ledgered(store, 3, (1, 3), gap)
    store.gaps.record_looks(
        fence, looked=[gap], written=[], late=[late(2)], dies=False, marks=True, now=at(70)
    )
    assert [head.message_id for head in store.pump.heads(9)] == [1, 2, 3]


def test_a_process_that_lost_the_lead_records_nothing(store: SqlStore) -> None:
    gap = permanent(2, 2)
    fence = ledgered(store, 3, (1, 3), gap)
    lead(store, "other")
    with pytest.raises(Fenced):
        store.gaps.record_looks(
            fence, looked=[gap], written=[], late=[late(2)], dies=True, marks=True, now=at(70)
        )
    with pytest.raises(Fenced):
        store.gaps.halt(fence, "ids went back", now=at(70))
    assert store.intake.state().halted is None
    assert store.gaps.unknown([1, 2, 3, 9]) == [2, 9]


def test_strangers_are_rows_that_neither_inbox_nor_ledger_nor_the_start_explain(
    store: SqlStore,
) -> None:
    store.intake.begin_after(5, by="test", now=T0)
    ledgered(store, 20, (6, 7, 20), permanent(10, 12), permanent(14, 19, step=3))
    assert store.gaps.strangers(list(range(1, 21))) == [8, 9, 13, 16, 19]
    assert store.gaps.strangers([]) == []


def test_a_halt_lasts_until_it_is_accepted_and_is_audited(store: SqlStore) -> None:
    fence = ledgered(store, 7, (1, 7))
    store.gaps.halt(fence, "ids went back", now=T0)
    store.gaps.halt(fence, "again", now=at(9))
    assert store.intake.state().halted == "ids went back"
    assert store.reads.counts().halted == "ids went back"
    store.gaps.accept(Acceptance(by="op", reason="restored", at=at(99)), [(3, 4)])
    assert store.intake.state().halted is None
    [stranger] = store.gaps.due_for_look(now=at(99), limit=9)
    assert (stranger.lo, stranger.hi) == (3, 4)
    assert stranger.why == "below W when ids went back; op: restored"
    with store.engine.connect() as connection:
        audit = connection.exec_driver_sql("SELECT act, actor, reason FROM operation_audit").all()
    assert [tuple(row) for row in audit] == [("accept-restart", "op", "restored")]


def test_a_disproved_step_stays_off(store: SqlStore) -> None:
    fence = ledgered(store, 1, (1,))
    store.gaps.turn_step_rule_off(fence, "row 5", now=T0)
    store.gaps.turn_step_rule_off(fence, "row 6", now=at(9))
    assert store.intake.state().step_rule_off
    with store.engine.connect() as connection:
        acts = connection.exec_driver_sql("SELECT act, reason FROM operation_audit").all()
    assert [tuple(row) for row in acts] == [("id-step-off", "row 5")]
