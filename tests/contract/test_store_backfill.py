"""Marks: due from the terminal commit on, retried until they are confirmed."""

from datetime import timedelta

import pytest
from store_builders import T0, commit, later, lead, receive, result

from msgexchange.ids import MailboxId
from msgexchange.ports import Batch, DueMark, Fenced, MarkOutcome
from msgexchange.store.sql_store import SqlStore

LONG_AGO = T0 - timedelta(days=1)


def settle(store: SqlStore, *ids: int) -> None:
    fence = lead(store)
    receive(store, *ids)
    commit(store, fence, Batch(messages=[result(id_) for id_ in ids]))


def due(store: SqlStore, at: float = 0, *, overdue_after: float = -1, limit: int = 10) -> list[int]:
    overdue_before = LONG_AGO if overdue_after < 0 else later(at - overdue_after)
    marks = store.backfill.due_marks(now=later(at), overdue_before=overdue_before, limit=limit)
    return [mark.message_id for mark in marks]


def test_only_terminal_messages_are_due(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    commit(store, fence, Batch(messages=[result(1)]))
    assert due(store) == [1]


def test_due_marks_come_in_id_order_and_bounded(store: SqlStore) -> None:
    settle(store, 1, 2, 3)
    assert due(store, limit=2) == [1, 2]


def test_a_confirmed_mark_is_done_and_stays_as_it_was_confirmed(store: SqlStore) -> None:
    settle(store, 1)
    store.backfill.record_marks({MailboxId(1): MarkOutcome.MARKED}, now=later(1))
    store.backfill.record_marks({MailboxId(1): MarkOutcome.ROW_GONE}, now=later(9))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert (view.marked_at, view.mark_error) == (later(1), None)
    assert due(store, 1e6) == []


def test_a_row_that_is_gone_is_done_and_says_so(store: SqlStore) -> None:
    settle(store, 1)
    store.pump.record_marks({MailboxId(1): MarkOutcome.ROW_GONE}, now=later(1))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert (view.marked_at, view.mark_error) == (later(1), "row-gone")


def test_a_foreign_mark_is_tried_again_in_thirty_seconds(store: SqlStore) -> None:
    settle(store, 1)
    store.backfill.record_marks({MailboxId(1): MarkOutcome.OTHER_VALUE}, now=later(0))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert (view.marked_at, view.mark_error) == (None, "other-value")
    assert due(store, 29) == []
    assert due(store, 30) == [1]


def test_a_failed_mark_counts_and_waits(store: SqlStore) -> None:
    settle(store, 1)
    for attempt, at in ((1, 30), (2, 90)):
        store.backfill.postpone_marks({MailboxId(1): later(at)}, error="mailbox: refused")
        assert due(store, at - 1) == []
        marks = store.backfill.due_marks(now=later(at), overdue_before=LONG_AGO, limit=9)
        assert marks == [DueMark(MailboxId(1), attempt, T0)]


def test_an_overdue_message_is_tried_at_every_sweep(store: SqlStore) -> None:
    settle(store, 1)
    store.backfill.postpone_marks({MailboxId(1): later(900)}, error="refused")
    assert due(store, 60, overdue_after=59) == [1]
    assert due(store, 60, overdue_after=61) == []


def test_a_message_that_is_not_terminal_is_never_recorded_as_marked(store: SqlStore) -> None:
    receive(store, 1)
    store.backfill.record_marks({MailboxId(1): MarkOutcome.MARKED}, now=T0)
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert view.marked_at is None


def test_the_sweep_checks_the_fence(store: SqlStore) -> None:
    old = lead(store)
    store.backfill.check_fence(old)
    lead(store, "other")
    with pytest.raises(Fenced):
        store.backfill.check_fence(old)
