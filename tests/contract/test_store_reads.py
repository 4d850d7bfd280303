"""What people see: one consistent picture of messages, flights and counts."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import insert, select, update
from store_builders import (
    DAY,
    T0,
    append,
    change,
    commit,
    event,
    flight,
    later,
    lead,
    new,
    receive,
    result,
    scan,
)

from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Flid, Identity, MailboxId
from msgexchange.lifecycle.states import ErrorClass, EventState, MessageState
from msgexchange.lifecycle.watermark import Gap
from msgexchange.ports import Acknowledged, Batch, LetterQuery
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import proc_state, proc_state_hst

DEAD = MessageState.DEAD


def dead(id_: int) -> Batch:
    letter = result(id_, DEAD, error_class=ErrorClass.PROTOCOL, error="clash")
    return Batch(messages=[letter])


def archive(store: SqlStore, id_: int) -> None:
    with store.engine.begin() as connection:
        row = connection.execute(select(proc_state).where(proc_state.c.msg_id == id_)).one()
        values = dict(row._mapping) | {"archived_at": T0}
        connection.execute(insert(proc_state_hst).values(values))
        connection.execute(proc_state.delete().where(proc_state.c.msg_id == id_))


def test_history_shows_old_and_new_of_each_version(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    first = b'[["FLNO",null,"CZ1"],["GTDT",null,[{"GATE":"A1"}]]]'
    commit(
        store,
        fence,
        Batch(
            messages=[result(1), result(2)],
            changes=[change("1", 1, 1, first), change("1", 2, 2, b'[["FLNO","CZ1",null]]')],
        ),
        now=later(1),
    )
    one, two = store.reads.changes(Flid("1"))
    assert (one.version, one.message_id, one.at) == (1, 1, later(1))
    assert one.changes == [("FLNO", None, "CZ1"), ("GTDT", None, ({"GATE": "A1"},))]
    assert two.changes == [("FLNO", "CZ1", None)]
    assert store.reads.changes(Flid("2")) == []


def test_a_message_shows_its_events_with_where_they_landed(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    batch = Batch(
        messages=[result(1)],
        changes=[change("b", 1, 1), change("a", 4, 1)],
        events=[event("a", target=Target.MSG), event("b")],
    )
    commit(store, fence, batch)
    store.outbox.mark_sent(fence, {EventId(1): Acknowledged(3, 77)}, now=later(1))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert view.flids == ("a", "b")
    sent, waiting = view.events
    assert (sent.state, sent.partition, sent.offset, sent.sent_at) == (
        EventState.SENT,
        3,
        77,
        later(1),
    )
    assert (waiting.state, waiting.partition, waiting.created_at) == (EventState.PENDING, None, T0)


def test_an_archived_message_is_still_found_and_holds_its_identity(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    commit(store, fence, Batch(messages=[result(1)]))
    archive(store, 1)
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert view.state is MessageState.SUCCEEDED
    key = result(1).identity
    assert key is not None
    with store.pump.transaction(fence) as transaction:
        assert transaction.holders([key])[key].message_id == 1
    over = result(2, identity=key, taken_over_from=MailboxId(1))
    commit(store, fence, Batch(messages=[over]))
    view = store.reads.message(MailboxId(1))
    assert view is not None
    assert view.identity is None
    assert store.reads.message(MailboxId(9)) is None


def test_dead_letters_are_listed_newest_first_until_they_are_closed(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2, 3)
    for id_ in (1, 2, 3):
        commit(store, fence, dead(id_))
    assert [line.message_id for line in store.letters.find(LetterQuery(limit=2))] == [3, 2]
    with store.engine.begin() as connection:
        closed = update(proc_state).where(proc_state.c.msg_id == 3).values(discarded_at=T0)
        connection.execute(closed)
    assert [line.message_id for line in store.letters.find(LetterQuery(limit=2))] == [2, 1]
    key = Identity("AODB|FLOP|STAT|000003")
    with store.pump.transaction(fence) as transaction:
        assert transaction.holders([key])[key].discarded


def test_the_head_is_the_smallest_message_that_waits(store: SqlStore) -> None:
    assert store.reads.head() is None
    fence = lead(store)
    receive(store, 1, 2)
    commit(store, fence, Batch(messages=[result(1)]))
    head = store.reads.head()
    assert head is not None
    assert head.message_id == 2


def test_counts_add_up(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2, 3)
    with store.intake.transaction(None) as transaction:
        gaps = (Gap(lo=4, hi=4, first_seen=later(3)), Gap(lo=6, hi=6, first_seen=later(2)))
        transaction.apply(scan((), 3, written=gaps), now=T0)
    commit(store, fence, Batch(messages=[result(1)], flights=[new(flight("1"))]))
    commit(store, fence, dead(2))
    append(store, fence, event("1", target=Target.MSG), event("1"), now=later(4))
    append(store, fence, event("2"), now=later(5))
    store.outbox.mark_sent(fence, {EventId(1): Acknowledged(0, 0)}, now=T0)
    counts = store.reads.counts()
    assert counts.watermark == 3
    assert counts.messages == {
        MessageState.PENDING: 1,
        MessageState.SUCCEEDED: 1,
        MessageState.DEAD: 1,
    }
    assert counts.dead_by_class == {ErrorClass.PROTOCOL: 1}
    assert counts.events == {
        (Target.MSG, EventState.SENT): 1,
        (Target.SCHD, EventState.PENDING): 2,
    }
    assert (counts.flights, counts.open_gaps, counts.unmarked) == (1, 2, 2)
    assert counts.oldest_gap_first_seen == later(2)
    assert counts.oldest_pending_event_at == later(4)
    assert counts.head_received_at == T0
    assert counts.oldest_unmarked_at == T0
    assert counts.last_received == {"AODB": T0}


def test_an_empty_store_counts_nothing(store: SqlStore) -> None:
    counts = store.reads.counts()
    assert (counts.messages, counts.events, counts.oldest_pending_event_at) == ({}, {}, None)
    assert (counts.head_received_at, counts.oldest_unmarked_at, counts.last_received) == (
        None,
        None,
        {},
    )
    assert not store.holds_data()
    store.reads.probe()


def test_a_store_with_a_flight_holds_data(store: SqlStore) -> None:
    commit(store, lead(store), Batch(messages=(), flights=[new(flight("1"))]))
    assert store.holds_data()


def test_the_facts_are_all_there_is(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    state = flight("1")
    batch = Batch(
        messages=[result(1)],
        flights=[new(state)],
        changes=[change("1", 1, 1)],
        events=[event("1")],
    )
    commit(store, fence, batch)
    archive(store, 1)
    facts = store.evidence.facts()
    assert sorted(fact.message_id for fact in facts.messages) == [1, 2]
    by_id = {fact.message_id: fact for fact in facts.messages}
    assert by_id[MailboxId(1)].business_key == ("AODB", "FLOP", "STAT", "000001")
    assert by_id[MailboxId(2)].business_key is None
    assert list(facts.flights) == [state]
    assert [(fact.flid, fact.version) for fact in facts.changes] == [("1", 1)]
    assert facts.flights[0].operation_day == DAY


def test_leadership_raises_the_fence_each_time(store: SqlStore) -> None:
    assert [lead(store), lead(store, "b"), lead(store)] == [1, 2, 3]


def test_the_database_clock_is_aware_and_near(store: SqlStore) -> None:
    first, second = store.leader.database_now(), store.leader.database_now()
    assert first.tzinfo is UTC
    assert timedelta() <= second - first < timedelta(minutes=1)
    assert first > datetime(2024, 1, 1, tzinfo=UTC)
