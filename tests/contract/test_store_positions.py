"""What is known to be published: the mark moves with what is sent, a position settles the rest."""

import pytest
from store_builders import T0, append, event, later, lead

from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.position import Mark, Position
from msgexchange.lifecycle.states import EventState
from msgexchange.ports import Acknowledged, EventFailure, Fenced
from msgexchange.store.sql_store import SqlStore

MSG, SCHD = Target.MSG, Target.SCHD
PENDING, SENT, SUPERSEDED = EventState.PENDING, EventState.SENT, EventState.SUPERSEDED


def fill(store: SqlStore, *flids: str) -> Fence:
    """One event per topic and flight named, msg first."""
    fence = lead(store)
    for flid in flids:
        append(store, fence, event(flid, target=MSG), event(flid))
    return fence


def position(
    store: SqlStore, target: Target, event_id: int, flush_id: str | None = None
) -> Position:
    known = store.positions.known(target, EventId(event_id))
    assert known is not None
    return Position(
        store_id="s",
        generation=1,
        event_id=EventId(event_id),
        nonce=known.nonce,
        flush_id=flush_id,
    )


def states(store: SqlStore, target: Target) -> dict[int, tuple[EventState, int | None]]:
    return {
        fact.event_id: (fact.state, fact.superseded_by)
        for fact in store.evidence.facts().events
        if fact.target is target
    }


def ack(*event_ids: int) -> dict[EventId, Acknowledged]:
    return {EventId(id_): Acknowledged(0, id_) for id_ in event_ids}


def test_there_is_no_mark_before_the_first_event_is_published(store: SqlStore) -> None:
    fill(store, "a")
    assert store.positions.mark(MSG) is None
    assert store.positions.mark(SCHD) is None


def test_the_mark_is_the_last_event_sent_of_its_target(store: SqlStore) -> None:
    fence = fill(store, "a", "b", "c")
    store.outbox.mark_sent(fence, ack(1, 3), now=T0)
    known = store.positions.known(MSG, EventId(3))
    assert known is not None
    assert store.positions.mark(MSG) == Mark(EventId(3), known.nonce)
    assert store.positions.mark(SCHD) is None
    store.outbox.mark_sent(fence, ack(5), now=T0)
    marked = store.positions.mark(MSG)
    assert marked is not None
    assert marked.event_id == 5


def test_a_flush_moves_the_mark_to_its_highest_winner(store: SqlStore) -> None:
    fence = fill(store, "a", "b", "a")
    flush = store.schd.begin_flush(fence, flush_id="f1", limit=9, bytes_max=1 << 20, now=T0)
    store.schd.end_flush(fence, flush, ack(4, 6), now=T0)
    marked = store.positions.mark(SCHD)
    assert marked is not None
    assert marked.event_id == 6


def test_an_event_is_known_under_its_own_target_alone(store: SqlStore) -> None:
    fill(store, "a")
    assert store.positions.known(MSG, EventId(1)) is not None
    assert store.positions.known(SCHD, EventId(1)) is None
    assert store.positions.known(MSG, EventId(99)) is None


def test_what_is_known_of_a_winner_is_the_flush_that_has_it_and_whether_it_went(
    store: SqlStore,
) -> None:
    fence = fill(store, "a")

    def known() -> tuple[bool, str | None]:
        found = store.positions.known(SCHD, EventId(2))
        assert found is not None
        return found.waits, found.flush_id

    assert known() == (True, None)
    flush = store.schd.begin_flush(fence, flush_id="f1", limit=9, bytes_max=1 << 20, now=T0)
    assert known() == (True, "f1")
    store.schd.end_flush(fence, flush, ack(2), now=T0)
    assert known() == (False, "f1")


def test_a_position_settles_every_pending_event_up_to_it(store: SqlStore) -> None:
    fence = fill(store, "a", "b", "c", "d")
    store.outbox.mark_sent(fence, ack(1), now=T0)
    found = position(store, MSG, 5)
    assert store.positions.settle(fence, MSG, found, now=later(3)) == 2
    assert {id_: state for id_, (state, _) in states(store, MSG).items()} == {
        1: SENT,
        3: SENT,
        5: SENT,
        7: PENDING,
    }
    assert store.positions.mark(MSG) == Mark(found.event_id, found.nonce)
    assert {state for state, _ in states(store, SCHD).values()} == {PENDING}
    assert store.positions.settle(fence, MSG, found, now=later(4)) == 0


def test_a_dead_event_below_the_position_stays_dead(store: SqlStore) -> None:
    fence = fill(store, "a", "b")
    store.outbox.charge(fence, EventFailure(EventId(1), 5, None, "too large"), now=T0)
    store.positions.settle(fence, MSG, position(store, MSG, 3), now=T0)
    assert states(store, MSG)[1] == (EventState.DEAD, None)


def test_a_position_with_a_flush_settles_that_flush_and_nothing_else(store: SqlStore) -> None:
    fence = fill(store, "a", "a", "b")
    flush = store.schd.begin_flush(fence, flush_id="f1", limit=1, bytes_max=1 << 20, now=T0)
    assert [entry.event_id for entry in flush.winners] == [4]
    append(store, fence, event("a"))
    found = position(store, SCHD, 4, "f1")
    assert store.positions.settle(fence, SCHD, found, now=later(3)) == 1
    assert states(store, SCHD) == {
        2: (SUPERSEDED, 4),
        4: (SENT, None),
        6: (PENDING, None),
        7: (PENDING, None),
    }


def test_a_flush_that_did_not_go_out_is_not_settled(store: SqlStore) -> None:
    fence = fill(store, "a")
    store.schd.begin_flush(fence, flush_id="f1", limit=9, bytes_max=1 << 20, now=T0)
    assert store.positions.settle(fence, SCHD, position(store, SCHD, 2, "f0"), now=T0) == 0
    assert states(store, SCHD)[2] == (PENDING, None)
    assert store.positions.mark(SCHD) is None


def test_a_charged_winner_is_out_of_its_flush(store: SqlStore) -> None:
    fence = fill(store, "a", "a", "b")
    store.schd.begin_flush(fence, flush_id="f1", limit=9, bytes_max=1 << 20, now=T0)
    store.schd.charge(fence, EventFailure(EventId(4), 1, later(9), "refused"), now=T0)
    assert store.positions.settle(fence, SCHD, position(store, SCHD, 6, "f1"), now=T0) == 1
    assert states(store, SCHD) == {2: (PENDING, None), 4: (PENDING, None), 6: (SENT, None)}


def test_a_fenced_process_settles_nothing(store: SqlStore) -> None:
    old = fill(store, "a")
    found = position(store, MSG, 1)
    lead(store, "other")
    with pytest.raises(Fenced):
        store.positions.settle(old, MSG, found, now=T0)
    assert states(store, MSG)[1] == (PENDING, None)


def test_a_new_id_and_a_new_generation_end_the_leaders_right(store: SqlStore) -> None:
    fence = fill(store, "a")
    before = store.leader.info()
    after = store.acts.new_generation(above=0, by="jl", reason="restored", now=T0)
    assert (after.store_id, after.generation) == (before.store_id, before.generation + 1)
    assert store.leader.info() == after
    with pytest.raises(Fenced):
        store.outbox.check_fence(fence)
    assert store.acts.new_generation(above=7, by="jl", reason=None, now=T0).generation == 8
    copied = store.acts.new_id("feedbeef", by="jl", reason="copied", now=T0)
    assert store.leader.info() == copied
    assert (copied.store_id, copied.generation) == ("feedbeef", 8)
