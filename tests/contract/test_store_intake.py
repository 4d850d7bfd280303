"""Taking messages in: rows, watermark and ledger move together or not at all."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select
from store_builders import T0, lead, receive, scan

from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.states import MessageState
from msgexchange.lifecycle.watermark import Gap, GapDecision, MailboxRow
from msgexchange.ports import Fenced, MessageFault
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import operation_audit


def test_a_scan_enqueues_rows_as_pending_and_moves_the_watermark(store: SqlStore) -> None:
    receive(store, 1, 2, 3)
    assert store.intake.state().watermark == 3
    heads = store.pump.heads(10)
    assert [head.message_id for head in heads] == [1, 2, 3]
    assert {head.state for head in heads} == {MessageState.PENDING}
    assert heads[0].text_bytes == 101
    assert heads[0].received_at == T0


def test_a_row_that_holds_no_text_is_taken_in_as_such(store: SqlStore) -> None:
    with store.intake.transaction(None) as transaction:
        transaction.enqueue(MailboxRow(MailboxId(1), None), now=T0, traceparent=None)
        transaction.apply(scan((), 1), now=T0)
    assert store.pump.heads(1)[0].text_bytes is None


def test_scanning_again_inserts_nothing_twice(store: SqlStore) -> None:
    receive(store, 1, 2)
    with store.intake.transaction(None) as transaction:
        assert transaction.apply(scan((1, 2, 3), 3), now=T0) == 1
    assert len(store.pump.heads(10)) == 3


def test_the_entry_enqueues_above_the_watermark_without_moving_it(store: SqlStore) -> None:
    receive(store, 1)
    with store.intake.transaction(None) as transaction:
        assert transaction.enqueue(MailboxRow(MailboxId(3), 9), now=T0, traceparent="00-x")
        assert not transaction.enqueue(MailboxRow(MailboxId(3), 9), now=T0, traceparent=None)
        assert not transaction.enqueue(MailboxRow(MailboxId(1), 9), now=T0, traceparent=None)
    assert store.intake.state().watermark == 1
    assert [head.message_id for head in store.pump.heads(10)] == [1]
    receive(store, 2, 3)
    assert [head.traceparent for head in store.pump.heads(10)] == [None, None, "00-x"]


def test_the_watermark_never_goes_back(store: SqlStore) -> None:
    receive(store, 1, 2, 3)
    with (
        pytest.raises(ValueError, match="watermark"),
        store.intake.transaction(None) as transaction,
    ):
        transaction.apply(scan((), 2), now=T0)
    assert store.intake.state().watermark == 3


def test_a_failure_inside_leaves_neither_rows_nor_watermark(store: SqlStore) -> None:
    broken = replace(scan((1,), 1), enqueue=(*scan((1,), 1).enqueue, *scan((1,), 1).enqueue))
    with pytest.raises(MessageFault), store.intake.transaction(None) as transaction:
        transaction.apply(broken, now=T0)
    assert store.intake.state().watermark == 0
    assert store.intake.is_new()


def test_the_ledger_returns_gaps_as_they_were_written(store: SqlStore) -> None:
    open_ = Gap(lo=5, hi=7, first_seen=T0)
    permanent = Gap(
        lo=9,
        hi=9,
        first_seen=T0,
        looks=4,
        decision=GapDecision.PERMANENT,
        decided_at=T0 + timedelta(seconds=61),
        why="still missing",
        next_look_at=T0 + timedelta(seconds=121),
    )
    filled = Gap(lo=11, hi=12, first_seen=T0, decision=GapDecision.FILLED, decided_at=T0)
    with store.intake.transaction(None) as transaction:
        transaction.apply(scan((), 0, written=(permanent, open_, filled)), now=T0)
    assert store.intake.state().ledger == [open_, permanent, filled]


def test_a_gap_that_splits_replaces_its_row(store: SqlStore) -> None:
    whole = Gap(lo=5, hi=7, first_seen=T0)
    parts = (Gap(lo=5, hi=5, first_seen=T0, looks=2), Gap(lo=7, hi=7, first_seen=T0, looks=2))
    with store.intake.transaction(None) as transaction:
        transaction.apply(scan((), 0, written=(whole,)), now=T0)
    with store.intake.transaction(None) as transaction:
        transaction.apply(scan((), 0, removed=(5,), written=parts), now=T0)
    assert store.intake.state().ledger == list(parts)


def test_gaps_below_the_watermark_are_no_longer_looked_at(store: SqlStore) -> None:
    gap = Gap(lo=1, hi=1, first_seen=T0, decision=GapDecision.PERMANENT, decided_at=T0)
    with store.intake.transaction(None) as transaction:
        transaction.apply(scan((2,), 2, written=(gap,)), now=T0)
    assert store.intake.state().ledger == []
    assert list(store.evidence.facts().gaps) == [gap]


def test_a_start_is_set_once_and_audited(store: SqlStore) -> None:
    assert store.intake.is_new()
    missing = Gap(lo=40, hi=40, first_seen=T0, decision=GapDecision.PERMANENT, decided_at=T0)
    assert store.intake.begin_after(41, by="mailbox.start-after", now=T0, gaps=[missing])
    assert not store.intake.is_new()
    later = Gap(lo=45, hi=45, first_seen=T0)
    assert not store.intake.begin_after(50, by="again", now=T0, gaps=[later])
    assert list(store.evidence.facts().gaps) == [missing]
    assert store.intake.state().watermark == 41
    assert store.evidence.began_after() == 41
    with store.engine.connect() as connection:
        row = connection.execute(select(operation_audit)).one()
    assert (row.actor, row.act, row.at) == ("mailbox.start-after", "begin-after", T0)


def test_a_store_that_took_a_row_in_is_not_new(store: SqlStore) -> None:
    with store.intake.transaction(None) as transaction:
        transaction.enqueue(MailboxRow(MailboxId(7), 1), now=T0, traceparent=None)
    assert not store.intake.is_new()
    assert not store.intake.begin_after(3, by="late", now=T0)


def test_a_fenced_scan_changes_nothing(store: SqlStore) -> None:
    old = lead(store)
    lead(store, "other")
    with pytest.raises(Fenced), store.intake.transaction(old) as transaction:
        transaction.apply(scan((1,), 1), now=T0)
    assert store.intake.is_new()


def test_a_scan_under_the_current_fence_is_taken(store: SqlStore) -> None:
    fence = lead(store)
    with store.intake.transaction(Fence(fence)) as transaction:
        assert transaction.apply(scan((1,), 1), now=T0) == 1
