"""The one commit: everything of a batch or nothing, by the leader alone."""

import zlib
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select
from store_builders import (
    CODEC,
    DAY,
    T0,
    Lost,
    abandon,
    change,
    commit,
    event,
    flight,
    later,
    lead,
    new,
    receive,
    result,
)

from msgexchange.flight.events import Target
from msgexchange.ids import Fence, Flid, Identity, MailboxId
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import (
    Batch,
    Fenced,
    HeadsMoved,
    LetterQuery,
    MarkOutcome,
    MessageFault,
    MessageResult,
    MetaColumns,
    SnapshotEntry,
)
from msgexchange.store.bulk import PortableBulk
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import dead_text, schd_snap_log
from msgexchange.store.transaction import Appender, HeldWriter, WriterRowNotHeld

DEAD, FAILED, SKIPPED = MessageState.DEAD, MessageState.FAILED, MessageState.SKIPPED


def whole_batch(id_: int = 1) -> Batch:
    state = flight("900", 1, last_message_id=MailboxId(id_))
    return Batch(
        messages=[result(id_)],
        flights=[new(state)],
        changes=[change("900", 1, id_, b'[["FLNO",null,"CZ900"]]')],
        events=[event("900", target=Target.MSG, id_=id_), event("900", id_=id_)],
    )


def test_a_commit_writes_state_provenance_events_and_outcome(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    commit(store, fence, whole_batch(), now=later(1))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert (view.state, view.finished_at) == (MessageState.SUCCEEDED, later(1))
    assert view.flids == ("900",)
    assert [(e.event_id, e.target) for e in view.events] == [(1, Target.MSG), (2, Target.SCHD)]
    assert store.reads.flight(Flid("900")) == whole_batch().flights[0].after
    assert store.pump.heads(10) == []
    due = store.backfill.due_marks(now=later(1), overdue_before=T0, limit=10)
    assert [mark.message_id for mark in due] == [1]


def test_a_failure_after_the_writes_leaves_none_of_them(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    with pytest.raises(Lost):
        abandon(store, fence, whole_batch())
    facts = store.evidence.facts()
    assert facts.messages[0].state is MessageState.PENDING
    assert [facts.events, facts.changes, facts.flights] == [[], [], []]
    commit(store, fence, whole_batch())
    assert [fact.event_id for fact in store.evidence.facts().events] == [1, 2]


def test_a_process_that_lost_the_lead_cannot_commit(store: SqlStore) -> None:
    old = lead(store)
    receive(store, 1)
    lead(store, "other")
    with pytest.raises(Fenced):
        commit(store, old, whole_batch())
    with pytest.raises(Fenced):
        store.pump.check_fence(old)
    assert store.evidence.facts().messages[0].state is MessageState.PENDING


def test_the_current_leader_passes_the_fence(store: SqlStore) -> None:
    store.pump.check_fence(lead(store))


def test_heads_stop_at_the_watermark_and_the_limit(store: SqlStore) -> None:
    receive(store, 1, 2, 3)
    assert [head.message_id for head in store.pump.heads(2)] == [1, 2]


def test_heads_that_were_settled_meanwhile_are_refused(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    heads = store.pump.heads(2)
    commit(store, fence, Batch(messages=[result(1)]))
    with pytest.raises(HeadsMoved), store.pump.transaction(fence) as transaction:
        transaction.confirm_heads(heads)


def test_heads_that_are_not_the_smallest_are_refused(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    heads = store.pump.heads(2)
    with pytest.raises(HeadsMoved), store.pump.transaction(fence) as transaction:
        transaction.confirm_heads(heads[1:])


def test_heads_that_failed_meanwhile_are_refused(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    heads = store.pump.heads(1)
    commit(store, fence, Batch(messages=[failed(1)]))
    with pytest.raises(HeadsMoved), store.pump.transaction(fence) as transaction:
        transaction.confirm_heads(heads)


def test_unchanged_heads_are_confirmed(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2, 3)
    heads = store.pump.heads(2)
    with store.pump.transaction(fence) as transaction:
        transaction.confirm_heads(heads)


def test_a_terminal_message_is_not_settled_again(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    commit(store, fence, Batch(messages=[result(1)]))
    with pytest.raises(HeadsMoved):
        commit(store, fence, Batch(messages=[result(1, SKIPPED, error="no-match:1")]))


def failed(id_: int, attempts: int = 1, cause: ErrorClass = ErrorClass.INFRA) -> MessageResult:
    return result(
        id_,
        FAILED,
        error_class=cause,
        last_cause=cause,
        error=f"try {attempts}",
        attempts=attempts,
        next_attempt_at=later(attempts),
    )


def test_a_failed_message_keeps_the_head_and_its_history(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    commit(store, fence, Batch(messages=[failed(1)]), now=later(0))
    head = store.pump.heads(1)[0]
    assert (head.state, head.attempts, head.next_attempt_at) == (FAILED, 1, later(1))
    assert head.processing_started_at == T0
    commit(store, fence, Batch(messages=[failed(1, 2)]), now=later(1))
    commit(store, fence, Batch(messages=[result(1, attempts=2)]), now=later(2))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert [(f.attempt, f.at, f.error) for f in view.failures] == [
        (1, later(0), "try 1"),
        (2, later(1), "try 2"),
    ]
    assert (view.last_cause, view.error_class, view.error) == (ErrorClass.INFRA, None, None)


def test_an_exhausted_message_dies_with_its_last_cause(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    dead = result(
        1,
        DEAD,
        error_class=ErrorClass.EXHAUSTED,
        last_cause=ErrorClass.UNSUPPORTED,
        error="unknown",
        attempts=5,
        dead_text="<MSG>原文</MSG>",
    )
    commit(store, fence, Batch(messages=[dead], exhausted_kinds=[("FLOP", "XXXX")]))
    [line] = store.letters.find(LetterQuery(limit=10))
    assert (line.error_class, line.last_cause, line.attempts, line.text_kept) == (
        ErrorClass.EXHAUSTED,
        ErrorClass.UNSUPPORTED,
        5,
        True,
    )
    with store.engine.connect() as connection:
        kept = connection.execute(select(dead_text.c.text_zlib)).scalar_one()
    assert zlib.decompress(kept).decode() == "<MSG>原文</MSG>"
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert [failure.error_class for failure in view.failures] == [ErrorClass.UNSUPPORTED]


def test_a_message_that_dies_at_once_is_no_failed_attempt(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    dead = result(
        1, DEAD, error_class=ErrorClass.MALFORMED, error="not XML", identity=None,
        meta=MetaColumns(), sent_at=None,
    )  # fmt: skip
    commit(store, fence, Batch(messages=[dead]))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert (view.failures, view.identity, view.meta) == ((), None, MetaColumns())


def test_kinds_are_hopeless_for_the_codec_that_gave_up(store: SqlStore) -> None:
    fence = lead(store)
    for _ in range(2):
        commit(store, fence, Batch(messages=(), exhausted_kinds=[("FLOP", "XXXX"), ("ZZZ", "")]))
    with store.pump.transaction(fence) as transaction:
        assert transaction.exhausted_kinds(CODEC) == {("FLOP", "XXXX"), ("ZZZ", "")}
        assert transaction.exhausted_kinds("2.0/abc") == frozenset()


def test_an_identity_is_found_with_what_binding_needs(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    key = Identity("AODB|FLOP|STAT|000001")
    commit(store, fence, Batch(messages=[result(1, digest="ab" * 16)]))
    with store.pump.transaction(fence) as transaction:
        holders = transaction.holders([key, Identity("nobody's")])
    assert list(holders) == [key]
    holder = holders[key]
    assert (holder.message_id, holder.state) == (1, MessageState.SUCCEEDED)
    assert (holder.sent_at, holder.digest) == (datetime(2026, 9, 3, 18, 30), "ab" * 16)
    assert not holder.discarded


def test_an_empty_styp_is_not_an_absent_one(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    meta = MetaColumns(sndr="AODB", type="FDEL", styp="", seqn="1", dttm="x")
    commit(store, fence, Batch(messages=[result(1, meta=meta)]))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert view.meta == meta


def test_two_messages_cannot_hold_one_identity(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    commit(store, fence, Batch(messages=[result(1)]))
    with pytest.raises(MessageFault):
        commit(store, fence, Batch(messages=[result(2, identity=result(1).identity)]))
    assert [head.message_id for head in store.pump.heads(5)] == [2]


def test_a_take_over_moves_the_identity_in_the_same_commit(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    commit(store, fence, Batch(messages=[result(1)]))
    over = result(
        2,
        identity=result(1).identity,
        taken_over_from=MailboxId(1),
        decision_note="reuses:1",
    )
    commit(store, fence, Batch(messages=[over]))
    old, now = store.reads.message(MailboxId(1)), store.reads.message(MailboxId(2))
    assert old is not None
    assert now is not None
    assert (old.identity, now.identity, now.note) == (None, result(1).identity, "reuses:1")


def test_a_take_over_within_one_batch_is_possible(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    commit(store, fence, Batch(messages=[failed(1)]))
    refused = result(1, DEAD, error_class=ErrorClass.PROTOCOL, error="bad")
    over = result(2, identity=refused.identity, taken_over_from=MailboxId(1))
    commit(store, fence, Batch(messages=[refused, over]))
    with store.pump.transaction(fence) as transaction:
        assert refused.identity is not None
        holder = transaction.holders([refused.identity])[refused.identity]
    assert holder.message_id == 2


def test_unknown_names_and_skips_are_kept(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    skipped = result(1, SKIPPED, error="no-match:900", unknown=("NEWN", "x:ODD"))
    commit(store, fence, Batch(messages=[skipped]))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert (view.state, view.error, view.unknown) == (SKIPPED, "no-match:900", ("NEWN", "x:ODD"))


def test_event_ids_follow_commit_order_without_holes(store: SqlStore) -> None:
    fence = lead(store)
    for round_ in range(3):
        events = [event(str(round_)), event(str(round_), target=Target.MSG)]
        commit(store, fence, Batch(messages=(), events=events))
    with pytest.raises(Lost):
        abandon(store, fence, Batch(messages=(), events=[event("lost")]))
    commit(store, fence, Batch(messages=(), events=[event("9")]))
    assert [fact.event_id for fact in store.evidence.facts().events] == [1, 2, 3, 4, 5, 6, 7]


def test_two_appends_in_one_transaction_number_on(store: SqlStore) -> None:
    fence = lead(store)
    with store.pump.transaction(fence) as transaction:
        for _ in range(2):
            batch = Batch(messages=(), events=[event(), event()])
            transaction.commit_batch(batch, now=T0, codec_version=CODEC)
    assert [fact.event_id for fact in store.evidence.facts().events] == [1, 2, 3, 4]


def test_events_need_the_writer_row(memory_store: SqlStore) -> None:
    appender = Appender(PortableBulk(), lambda: 1)
    with memory_store.engine.begin() as connection:
        writer = HeldWriter.lock(connection)
    with pytest.raises(WriterRowNotHeld):
        appender.append(writer, [event()], now=T0)
    assert memory_store.evidence.facts().events == []


def test_the_newest_plan_of_a_day_is_remembered(store: SqlStore) -> None:
    fence = lead(store)
    first, second = datetime(2026, 9, 3, 18, 0), datetime(2026, 9, 3, 18, 0, 1)
    next_day = DAY + timedelta(days=1)
    commit(store, fence, Batch(messages=(), plan_days={DAY: first}))
    commit(store, fence, Batch(messages=(), plan_days={DAY: second, next_day: first}))
    with store.pump.transaction(fence) as transaction:
        assert transaction.newest_plans([DAY, next_day, DAY - timedelta(days=1)]) == {
            DAY: second,
            next_day: first,
        }
        assert transaction.last_versions([Flid("1")]) == {}


def test_marks_ride_along_with_a_commit(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    commit(store, fence, Batch(messages=[result(1)]))
    riding = Batch(messages=[result(2)], marked={MailboxId(1): MarkOutcome.MARKED})
    commit(store, fence, riding, now=later(3))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert view.marked_at == later(3)


def test_a_plan_leaves_one_log_row_with_its_last_outcome(store: SqlStore) -> None:
    entry = SnapshotEntry(
        message_id=MailboxId(7),
        received_at=T0,
        kind="SCHD/DNLD",
        scope_start=DAY,
        scope_end=DAY,
        flights=2,
        outcome="dead",
        reason="clash",
    )
    store.pump.log_snapshot(entry)
    store.pump.log_snapshot(replace(entry, outcome="applied", reason=None))
    with store.engine.connect() as connection:
        [row] = connection.execute(select(schd_snap_log)).all()
    assert (row.msg_id, row.outcome, row.reason, row.flights) == (7, "applied", None, 2)


def test_a_stamp_keeps_its_microseconds_and_its_zone(store: SqlStore) -> None:
    receive(store, 1, at=T0.astimezone())
    [head] = store.pump.heads(1)
    assert head.received_at == T0
    assert head.received_at.utcoffset() == timedelta()


def test_text_the_database_cannot_take_is_the_messages_fault(store: SqlStore) -> None:
    refuses(store, "\ud800")


@pytest.mark.postgres
def test_postgresql_takes_no_nul_and_says_so_of_the_message(postgres_store: SqlStore) -> None:
    refuses(postgres_store, "nul\0")


def refuses(store: SqlStore, text: str) -> None:
    fence = lead(store)
    receive(store, 1)
    with pytest.raises(MessageFault):
        commit(store, fence, Batch(messages=[result(1, SKIPPED, error=text)]))
    assert store.pump.heads(1)


def test_a_fence_of_the_future_is_refused_too(store: SqlStore) -> None:
    fence = lead(store)
    with pytest.raises(Fenced):
        store.pump.check_fence(Fence(fence + 1))
