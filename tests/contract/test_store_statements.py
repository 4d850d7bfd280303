"""A batch costs a constant number of statements, whatever its size (spec 3.5)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy import event as listening
from store_builders import (
    CODEC,
    RICH,
    T0,
    change,
    event,
    flight,
    lead,
    moved,
    new,
    receive,
    result,
)

from msgexchange.flight.events import Target
from msgexchange.flight.state import FlightState
from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import Batch, FlightWrite, MarkOutcome, MessageResult
from msgexchange.store.sql_store import SqlStore


@contextmanager
def counted(engine: Engine) -> Iterator[Counter[str]]:
    """Statements sent inside, and how many of them were executemany."""
    seen: Counter[str] = Counter()

    def count(*args: Any) -> None:
        seen["statements"] += 1
        seen["many"] += bool(args[5])

    listening.listen(engine, "before_cursor_execute", count)
    try:
        yield seen
    finally:
        listening.remove(engine, "before_cursor_execute", count)


def run(store: SqlStore, fence: Fence, batch: Batch) -> Counter[str]:
    """One whole pump transaction over this batch, as the pump would do it."""
    heads = store.pump.heads(len(batch.messages))
    with counted(store.engine) as seen, store.pump.transaction(fence) as transaction:
        transaction.confirm_heads(heads)
        transaction.holders([m.identity for m in batch.messages if m.identity is not None])
        transaction.flights([write.after.flid for write in batch.flights])
        transaction.last_versions([write.after.flid for write in batch.flights])
        transaction.commit_batch(batch, now=T0, codec_version=CODEC)
    return seen


def batch_of(ids: Sequence[int], writes: Sequence[FlightWrite]) -> Batch:
    id_ = ids[0]
    return Batch(
        messages=[*(result(id_) for id_ in ids[:-1]), dead(ids[-1])],
        flights=writes,
        changes=[change(w.after.flid, w.after.version, id_) for w in writes],
        events=[
            event(write.after.flid, target=target)
            for write in writes
            for target in (Target.MSG, Target.SCHD)
        ],
        marked={MailboxId(id_ - 1): MarkOutcome.MARKED},
    )


def dead(id_: int) -> MessageResult:
    return result(
        id_,
        MessageState.DEAD,
        error_class=ErrorClass.EXHAUSTED,
        last_cause=ErrorClass.INFRA,
        error="x",
        attempts=5,
        dead_text="<MSG/>",
    )


def update_of(state: FlightState) -> FlightWrite:
    content = {**RICH, "GTDT": ({"GATE": "Z"},), "ROUT": (), "ERUT": ({"STOP": "x"},)}
    return moved(state, content)


@pytest.mark.parametrize("size", [50, 200])
def test_a_batch_of_many_costs_as_much_as_a_batch_of_one(store: SqlStore, size: int) -> None:
    fence = lead(store)
    receive(store, *range(1, size + 2))
    old = [flight(f"old{n}", 1, RICH) for n in range(size)]
    with store.pump.transaction(fence) as transaction:
        known = Batch(messages=(), flights=[new(state) for state in old[1:]])
        transaction.commit_batch(known, now=T0, codec_version=CODEC)
        transaction.commit_batch(
            Batch(messages=(), flights=[new(old[0])]), now=T0, codec_version=CODEC
        )
    one = run(store, fence, batch_of([1], [update_of(old[0]), new(flight("new", 1, RICH))]))
    writes = [update_of(state) for state in old[1:]]
    writes += [new(flight(f"new{n}", 1, RICH)) for n in range(size)]
    many = run(store, fence, batch_of(range(2, size + 2), writes))
    assert many["statements"] == one["statements"]
    assert many["statements"] < 45


def test_a_plan_of_1000_flights_costs_as_much_as_one_of_10(store: SqlStore) -> None:
    small, large = plan_costs(store, 10, 1_000)
    assert small == large


@pytest.mark.postgres
def test_in_the_fast_form_a_plan_of_10000_flights_costs_as_much_as_one_of_10(
    postgres_store: SqlStore,
) -> None:
    small, large = plan_costs(postgres_store, 10, 10_000)
    assert small == large


def plan_costs(store: SqlStore, *sizes: int) -> list[int]:
    """Statements for a plan of each size, of flights not seen before."""
    fence = lead(store)
    ids = range(1, len(sizes) + 1)
    receive(store, *ids)
    return [
        run(
            store,
            fence,
            batch_of([id_], [new(flight(f"P{id_}F{n}", 1, RICH)) for n in range(size)]),
        )["statements"]
        for id_, size in zip(ids, sizes, strict=True)
    ]


@pytest.mark.postgres
def test_the_fast_form_sends_every_row_of_a_table_at_once(postgres_store: SqlStore) -> None:
    fence = lead(postgres_store)
    receive(postgres_store, 1, 2)
    old = flight("old", 1, RICH)
    first = run(postgres_store, fence, batch_of([1], [new(old)]))
    second = run(postgres_store, fence, batch_of([2], [update_of(old), new(flight("n", 1, RICH))]))
    assert first["many"] == second["many"] == 0


def test_taking_messages_in_costs_the_same_for_any_number(store: SqlStore) -> None:
    with counted(store.engine) as one:
        receive(store, 1)
    with counted(store.engine) as many:
        receive(store, *range(2, 502))
    assert many["statements"] == one["statements"]


def test_a_flush_costs_the_same_for_any_number_of_flights(store: SqlStore) -> None:
    fence = lead(store)
    seen = []
    for size in (3, 60):
        with store.pump.transaction(fence) as transaction:
            events = [event(f"f{n % size}") for n in range(size * 3)]
            batch = Batch(messages=(), events=events)
            transaction.commit_batch(batch, now=T0, codec_version=CODEC)
        with counted(store.engine) as count:
            flush = store.schd.begin_flush(
                fence, flush_id="f", limit=size, bytes_max=1 << 20, now=T0
            )
            store.schd.end_flush(fence, flush, {}, now=T0)
        assert len(flush.winners) == size
        seen.append(count["statements"])
    assert seen[0] == seen[1]
