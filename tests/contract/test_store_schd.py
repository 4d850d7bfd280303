"""Latest state per flight: the newest event wins, and stands for those before it."""

from store_builders import T0, append, event, later, lead

from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.states import EventState
from msgexchange.ports import Acknowledged, EventFailure, Flush
from msgexchange.store.sql_store import SqlStore

BYTES = 1 << 20
PENDING, SENT, SUPERSEDED = EventState.PENDING, EventState.SENT, EventState.SUPERSEDED


def begin(
    store: SqlStore, fence: Fence, *, limit: int = 10, bytes_max: int = BYTES, at: float = 0
) -> Flush:
    return store.schd.begin_flush(
        fence, flush_id=f"flush-{at}", limit=limit, bytes_max=bytes_max, now=later(at)
    )


def winners(flush: Flush) -> list[int]:
    return [entry.event_id for entry in flush.winners]


def end(store: SqlStore, fence: Fence, flush: Flush, *sent: int) -> None:
    acks = {EventId(id_): Acknowledged(0, id_) for id_ in sent}
    store.schd.end_flush(fence, flush, acks, now=later(60))


def states(store: SqlStore) -> dict[int, tuple[EventState, int | None]]:
    return {
        fact.event_id: (fact.state, fact.superseded_by) for fact in store.evidence.facts().events
    }


def charge(store: SqlStore, fence: Fence, id_: int, attempts: int, at: float | None) -> None:
    next_at = None if at is None else later(at)
    store.schd.charge(fence, EventFailure(EventId(id_), attempts, next_at, "refused"), now=T0)


def flights(store: SqlStore, *flids: str) -> Fence:
    fence = lead(store)
    append(store, fence, *(event(flid) for flid in flids))
    return fence


def test_the_newest_event_of_each_flight_is_sent_and_supersedes_the_others(
    store: SqlStore,
) -> None:
    fence = flights(store, "a", "b", "a", "a")
    flush = begin(store, fence)
    assert winners(flush) == [2, 4]
    end(store, fence, flush, 2, 4)
    assert states(store) == {
        1: (SUPERSEDED, 4),
        2: (SENT, None),
        3: (SUPERSEDED, 4),
        4: (SENT, None),
    }
    assert winners(begin(store, fence)) == []


def test_events_of_other_targets_are_left_alone(store: SqlStore) -> None:
    fence = flights(store, "a")
    append(store, fence, event("a", target=Target.MSG), event("a"))
    flush = begin(store, fence)
    end(store, fence, flush, *winners(flush))
    assert states(store) == {1: (SUPERSEDED, 3), 2: (PENDING, None), 3: (SENT, None)}


def test_flights_that_wait_longest_go_first(store: SqlStore) -> None:
    fence = flights(store, "z", "a", "b", "z")
    assert winners(begin(store, fence, limit=2)) == [2, 4]


def test_few_flights_with_many_events_do_not_hide_the_others(store: SqlStore) -> None:
    fence = flights(store, *["a"] * 30, "b", "c")
    assert winners(begin(store, fence, limit=2)) == [30, 31]


def test_a_flush_is_bounded_in_bytes_but_never_empty(store: SqlStore) -> None:
    fence = flights(store, "a", "b", "c")
    assert winners(begin(store, fence, bytes_max=14)) == [1, 2]
    assert winners(begin(store, fence, bytes_max=1)) == [1]


def test_what_is_appended_during_a_flush_is_not_superseded_by_it(store: SqlStore) -> None:
    fence = flights(store, "a", "a")
    flush = begin(store, fence)
    append(store, fence, event("a"))
    end(store, fence, flush, 2)
    assert states(store) == {1: (SUPERSEDED, 2), 2: (SENT, None), 3: (PENDING, None)}
    assert winners(begin(store, fence)) == [3]


def test_a_flush_left_behind_by_a_crash_is_taken_again(store: SqlStore) -> None:
    fence = flights(store, "a", "a", "b")
    assert winners(begin(store, fence)) == [2, 3]
    again = begin(store, lead(store), at=1)
    assert (again.flush_id, winners(again)) == ("flush-1", [2, 3])
    end(store, Fence(fence + 1), again, 2, 3)
    assert states(store)[1] == (SUPERSEDED, 2)


def test_what_was_not_sent_is_pending_again(store: SqlStore) -> None:
    fence = flights(store, "a", "a", "b", "b")
    end(store, fence, begin(store, fence), 4)
    assert states(store) == {
        1: (PENDING, None),
        2: (PENDING, None),
        3: (SUPERSEDED, 4),
        4: (SENT, None),
    }


def test_a_winner_that_backs_off_holds_its_flight_until_it_is_due(store: SqlStore) -> None:
    fence = flights(store, "a", "a", "b")
    end(store, fence, begin(store, fence), 3)
    charge(store, fence, 2, 1, 5)
    append(store, fence, event("c"))
    assert winners(begin(store, fence, at=1)) == [4]
    flush = begin(store, fence, at=5)
    assert winners(flush) == [2]
    assert flush.winners[0].attempts == 1


def test_held_flights_do_not_starve_those_behind_them(store: SqlStore) -> None:
    fence = flights(store, *"abcdefgh", *["x"] * 20, "y", "z")
    for id_ in range(1, 9):
        charge(store, fence, id_, 1, 100)
    assert winners(begin(store, fence, limit=2)) == [28, 29]
    assert winners(begin(store, fence, limit=3)) == [28, 29, 30]


def test_a_newer_state_frees_a_flight_that_backs_off(store: SqlStore) -> None:
    fence = flights(store, "a")
    charge(store, fence, 1, 1, 100)
    append(store, fence, event("a"))
    flush = begin(store, fence, at=1)
    assert winners(flush) == [2]
    end(store, fence, flush, 2)
    assert states(store) == {1: (SUPERSEDED, 2), 2: (SENT, None)}


def test_a_winners_death_keeps_what_it_stood_for_superseded(store: SqlStore) -> None:
    fence = flights(store, "a", "a", "b")
    end(store, fence, begin(store, fence), 3)
    charge(store, fence, 2, 5, None)
    assert states(store)[1] == (SUPERSEDED, 2)
    assert states(store)[2] == (EventState.DEAD, None)
    append(store, fence, event("a"), event("b"))
    flush = begin(store, fence)
    assert [(e.event_id, e.previous_is_dead) for e in flush.winners] == [(4, True), (5, False)]


def test_what_was_refused_before_goes_alone_and_spoils_no_other_flights_flush(
    store: SqlStore,
) -> None:
    fence = flights(store, *"abcd")
    for id_ in (2, 3):
        charge(store, fence, id_, 1, 5)
    gone = []
    while (flush := begin(store, fence, at=9)).winners:
        gone.append((winners(flush), flush.more))
        end(store, fence, flush, *winners(flush))
    assert gone == [([1], True), ([2], True), ([3], True), ([4], False)]


def test_a_flush_says_whether_it_left_anything_behind(store: SqlStore) -> None:
    fence = flights(store, "a", "b", "c")
    assert not begin(store, fence).more
    assert begin(store, fence, limit=2).more
    assert begin(store, fence, bytes_max=1).more
