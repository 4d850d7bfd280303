"""One ordered target: oldest first, sent once, a dead event named to its successors."""

import pytest
from store_builders import DAY, T0, append, event, later, lead

from msgexchange.flight.events import EventType, Target
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.states import EventState
from msgexchange.ports import Acknowledged, EventFailure, Fenced, MessageFault, OutboxEntry
from msgexchange.store.sql_store import SqlStore

MSG, SCHD = Target.MSG, Target.SCHD
BYTES = 1 << 20


def pending(store: SqlStore, *, limit: int = 100, bytes_max: int = BYTES) -> list[OutboxEntry]:
    return list(store.outbox.pending(MSG, limit=limit, bytes_max=bytes_max))


def ids(entries: list[OutboxEntry]) -> list[int]:
    return [entry.event_id for entry in entries]


def ack(*event_ids: int) -> dict[EventId, Acknowledged]:
    return {EventId(id_): Acknowledged(2, 100 + id_) for id_ in event_ids}


def failure(id_: int, attempts: int, at: float | None) -> EventFailure:
    next_at = None if at is None else later(at)
    return EventFailure(EventId(id_), attempts, next_at, "too large")


def fill(store: SqlStore, count: int = 4) -> Fence:
    """Events 1 .. 2 * count: msg and schd in turn."""
    fence = lead(store)
    for n in range(count):
        append(store, fence, event(str(n % 2), target=MSG, version=n), event(str(n % 2)))
    return fence


def test_events_of_the_target_come_oldest_first_with_all_a_record_needs(store: SqlStore) -> None:
    fill(store)
    entries = pending(store)
    assert ids(entries) == [1, 3, 5, 7]
    assert entries[0] == OutboxEntry(
        event_id=EventId(1),
        nonce=entries[0].nonce,
        type=EventType.NOTICE,
        partition_key="0",
        flid=event("0").flid,
        message_id=event().message_id,
        state_version=0,
        operation_day=DAY,
        payload=b'{"a":1}',
        attempts=0,
        next_attempt_at=None,
        traceparent=event().traceparent,
    )


def test_a_window_is_bounded_in_events_and_bytes_but_never_empty(store: SqlStore) -> None:
    fill(store)
    assert ids(pending(store, limit=2)) == [1, 3]
    assert ids(pending(store, bytes_max=14)) == [1, 3]
    assert ids(pending(store, bytes_max=1)) == [1]


def test_a_tombstone_has_no_payload(store: SqlStore) -> None:
    fence = lead(store)
    append(store, fence, event(target=MSG, payload=None), event(target=MSG, payload="值".encode()))
    assert [entry.payload for entry in pending(store)] == [None, "值".encode()]


def test_sent_events_leave_the_line_and_say_where_they_landed(store: SqlStore) -> None:
    fence = fill(store)
    store.outbox.mark_sent(fence, ack(1, 3), now=later(2))
    assert ids(pending(store)) == [5, 7]
    view = store.reads.message(event().message_id)
    assert view is None
    sent = [fact for fact in store.evidence.facts().events if fact.state is EventState.SENT]
    assert [(fact.event_id, fact.sent_at) for fact in sent] == [(1, later(2)), (3, later(2))]


def test_marking_again_after_an_uncertain_commit_changes_nothing(store: SqlStore) -> None:
    fence = fill(store)
    store.outbox.mark_sent(fence, ack(1), now=later(2))
    store.outbox.mark_sent(fence, ack(1, 3), now=later(9))
    sent = [fact for fact in store.evidence.facts().events if fact.state is EventState.SENT]
    assert [fact.sent_at for fact in sent] == [later(2), later(9)]


def test_a_dead_event_is_not_marked_sent(store: SqlStore) -> None:
    fence = fill(store)
    store.outbox.charge(fence, failure(1, 5, None), now=T0)
    with pytest.raises(MessageFault, match=r"\[1\]"):
        store.outbox.mark_sent(fence, ack(1, 3), now=T0)
    assert ids(pending(store)) == [3, 5, 7]


def test_a_refused_event_keeps_its_place_until_it_is_due(store: SqlStore) -> None:
    fence = fill(store)
    store.outbox.charge(fence, failure(1, 2, 4), now=T0)
    head = pending(store)[0]
    assert (head.event_id, head.attempts, head.next_attempt_at) == (1, 2, later(4))
    store.outbox.mark_sent(fence, ack(1), now=later(5))
    assert ids(pending(store)) == [3, 5, 7]


def test_a_death_is_told_to_later_events_of_the_flight_alone(store: SqlStore) -> None:
    fence = fill(store)
    store.outbox.charge(fence, failure(1, 5, None), now=T0)
    after = {entry.event_id: entry.previous_is_dead for entry in pending(store)}
    assert after == {3: False, 5: True, 7: False}
    with pytest.raises(MessageFault):
        store.outbox.charge(fence, failure(1, 6, None), now=T0)


def test_a_fenced_process_marks_and_charges_nothing(store: SqlStore) -> None:
    old = fill(store)
    lead(store, "other")
    with pytest.raises(Fenced):
        store.outbox.mark_sent(old, ack(1), now=T0)
    with pytest.raises(Fenced):
        store.outbox.charge(old, failure(1, 1, 1), now=T0)
    with pytest.raises(Fenced):
        store.outbox.check_fence(old)
    assert pending(store)[0].attempts == 0
