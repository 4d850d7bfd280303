"""Dead events: listed, and replaced by a new event, never revived."""

import json

import pytest
from store_builders import T0, append, commit, event, flight, later, lead, moved, new

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.state import FlightStatus
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.states import EventState
from msgexchange.pipeline.redeliver import NotRedeliverable, redeliver
from msgexchange.ports import Batch, EventFailure, OutboxEntry
from msgexchange.store.sql_store import SqlStore

MSG, SCHD = Target.MSG, Target.SCHD


def kill(store: SqlStore, fence: Fence, target: Target, id_: int) -> None:
    failure = EventFailure(EventId(id_), 5, None, "too large")
    (store.outbox if target is MSG else store.schd).charge(fence, failure, now=T0)


def again(store: SqlStore, id_: int) -> int:
    return redeliver(
        store.redelivery, EventId(id_), by="jl", reason="raised", timezone="Asia/Tokyo", now=T0
    )


def pending(store: SqlStore) -> list[OutboxEntry]:
    return list(store.outbox.pending(MSG, limit=100, bytes_max=1 << 20))


def test_dead_events_are_listed_newest_first_until_something_went_out_for_them(
    store: SqlStore,
) -> None:
    fence = lead(store)
    append(store, fence, event("a", target=MSG), event("b", target=MSG), event("c", target=MSG))
    kill(store, fence, MSG, 1)
    kill(store, fence, MSG, 2)
    found = store.redelivery.dead_events(limit=9)
    assert [dead.event_id for dead in found] == [2, 1]
    assert (found[0].error, found[0].attempts, found[0].flid) == ("too large", 5, "b")
    again(store, 2)
    assert [dead.event_id for dead in store.redelivery.dead_events(limit=9)] == [1]


def test_on_msg_the_same_content_goes_to_the_end_of_the_line(store: SqlStore) -> None:
    fence = lead(store)
    append(store, fence, event("a", target=MSG, payload=b'{"n":1}'), event("b", target=MSG))
    kill(store, fence, MSG, 1)
    assert again(store, 1) == 3
    entries = pending(store)
    assert [entry.event_id for entry in entries] == [2, 3]
    assert entries[1].redelivery_of == 1
    assert entries[1].payload == b'{"n":1}'
    dead = {fact.event_id: fact.state for fact in store.evidence.facts().events}[EventId(1)]
    assert dead is EventState.DEAD


def test_what_was_redelivered_is_missing_no_more(store: SqlStore) -> None:
    fence = lead(store)
    append(store, fence, event("a", target=MSG), event("a", target=MSG))
    kill(store, fence, MSG, 1)
    assert pending(store)[0].previous_is_dead
    assert store.reads.counts().events[MSG, EventState.DEAD] == 1
    again(store, 1)
    assert not any(entry.previous_is_dead for entry in pending(store))
    assert (MSG, EventState.DEAD) not in store.reads.counts().events


def test_on_schd_the_current_state_goes_out(store: SqlStore) -> None:
    fence = lead(store)
    before = flight("a", 1)
    commit(store, fence, Batch(messages=(), flights=[new(before)], events=[event("a")]))
    kill(store, fence, SCHD, 1)
    commit(store, fence, Batch(messages=(), flights=[moved(before, {"FLNO": "CZ2"})], events=()))
    again(store, 1)
    [entry] = store.schd.begin_flush(
        fence, flush_id="f", limit=9, bytes_max=1 << 20, now=later(1)
    ).winners
    assert (entry.type, entry.state_version, entry.redelivery_of) == (EventType.UPSERT, 2, 1)
    assert json.loads(entry.payload or b"")["state"] == {"FLNO": "CZ2"}


@pytest.mark.parametrize("is_known", [True, False])
def test_on_schd_a_flight_that_is_gone_gets_a_tombstone(store: SqlStore, is_known: bool) -> None:
    fence = lead(store)
    gone = [new(flight("a", 3, status=FlightStatus.DELETED))] if is_known else []
    commit(store, fence, Batch(messages=(), flights=gone, events=[event("a", version=3)]))
    kill(store, fence, SCHD, 1)
    again(store, 1)
    [entry] = store.schd.begin_flush(
        fence, flush_id="f", limit=9, bytes_max=1 << 20, now=later(1)
    ).winners
    assert (entry.type, entry.payload, entry.state_version) == (EventType.TOMBSTONE, None, 3)


def test_an_event_is_redelivered_once_and_only_when_dead(store: SqlStore) -> None:
    fence = lead(store)
    append(store, fence, event("a", target=MSG))
    with pytest.raises(NotRedeliverable, match="not dead"):
        again(store, 1)
    with pytest.raises(NotRedeliverable, match="not dead"):
        again(store, 99)
    kill(store, fence, MSG, 1)
    again(store, 1)
    with pytest.raises(NotRedeliverable, match="redelivered as 2"):
        again(store, 1)
