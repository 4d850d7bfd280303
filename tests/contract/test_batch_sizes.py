"""What a batch may not change: everything but speed is the same as with one message a commit (3.5).

Random messages (plans, operations, deletions, doubles, what cannot be read, decoded or stored) go
through pumps of several sizes over stores of their own; then every row of every table, every record
of the topic and every mark is compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from random import Random  # noqa: TID251 - seeded, the same every time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Engine, Table, select

from fakes.line import Line, decode_or_die
from fakes.topic import OneByOne, Topic
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.flight.events import Target
from msgexchange.flight.messages import Decoded
from msgexchange.ids import Fence
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.delivery import DeliveryRules
from msgexchange.pipeline.dispatch import Dispatch
from msgexchange.pipeline.process import PumpBounds
from msgexchange.ports import Batch, MessageFault, RetryNow
from msgexchange.simulation.workload import POISON, texts
from msgexchange.store.engine import cloned_in_memory
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import leader_lease, metadata

Rows = Mapping[str, Sequence[Any]]


class FaultyTransactions:
    """A pump's store that cannot store what some messages bring, and is in conflict now and then.

    The conflicts of two runs fall differently: they may change nothing either.
    """

    def __init__(self, inner: Any, refused: frozenset[int], conflicts: Random) -> None:
        self._inner = inner
        self._refused = refused
        self._conflicts = conflicts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Any]:
        with self._inner.transaction(fence) as opened:
            commit = opened.commit_batch

            def commit_batch(batch: Batch, **named: Any) -> None:
                applied = {
                    m.message_id for m in batch.messages if m.state is MessageState.SUCCEEDED
                }
                if applied & self._refused:
                    raise MessageFault("value out of range")
                commit(batch, **named)
                if self._conflicts.random() < 0.1:
                    raise RetryNow("deadlock")

            opened.commit_batch = commit_batch
            yield opened


def decoded(text: str) -> Decoded:
    if POISON in text:
        raise RecursionError("too deep for me")
    return decode_or_die(text)


def through(
    template: Engine,
    raw: Sequence[str],
    bounds: PumpBounds,
    *,
    unreadable: set[int],
    refused: frozenset[int],
    seed: int,
) -> tuple[Rows, list[Any], set[int]]:
    """Rows by table, records of the topic, and marks after everything is through."""
    store = SqlStore(cloned_in_memory(template), default_catalogue(), nonce=count(1).__next__)
    try:
        line = Line(store, decode=decoded, bounds=bounds)
        line.mailbox.unreadable = unreadable
        line.pump._store = FaultyTransactions(store.pump, refused, Random(seed))
        line.receive(raw)
        run_to_the_end(line)
        topic = Topic()
        dispatch(line, topic)
        return rows_of(store.engine), topic.records, line.mailbox.marked
    finally:
        store.close()


def run_to_the_end(line: Line) -> None:
    for _ in range(10_000):
        try:
            pause = line.pump.step()
        except RetryNow:
            continue
        if pause > 0 and not line.store.pump.heads(1):
            return
        line.clock.seconds += pause
    raise AssertionError("it does not end")


def dispatch(line: Line, topic: Topic) -> None:
    step = Dispatch(
        target=Target.MSG,
        store=line.store.outbox,
        producer=OneByOne(topic),
        clock=line.clock,
        fence=line.fence,
        generation=1,
        rules=DeliveryRules(),
        idle_poll=timedelta(seconds=1),
        telemetry=line.told,
    )
    while step.step() < 1:
        continue


def compared(table: Table) -> list[Column[Any]]:
    """All but the nonces, of which a commit that is tried again takes new ones."""
    return [column for column in table.columns if column.name not in {"nonce", "audit_id"}]


def rows_of(engine: Engine) -> Rows:
    with engine.connect() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(*compared(table)))))
            for table in metadata.sorted_tables
            if table is not leader_lease
        }


@given(
    seed=st.integers(0, 10_000),
    amount=st.integers(1, 40),
    unreadable=st.sets(st.integers(2, 40), max_size=2),
    refused=st.frozensets(st.integers(2, 40), max_size=3),
    sizes=st.tuples(st.integers(2, 7), st.integers(7, 60)),
    flights_max=st.sampled_from([1, 3, 2_000]),
)
@settings(max_examples=60, deadline=None)
def test_a_batch_changes_nothing_but_speed(
    memory_template: Engine,
    seed: int,
    amount: int,
    unreadable: set[int],
    refused: frozenset[int],
    sizes: tuple[int, int],
    flights_max: int,
) -> None:
    raw = texts(Random(seed), amount=amount)

    def run(bounds: PumpBounds) -> tuple[Rows, list[Any], set[int]]:
        return through(
            memory_template, raw, bounds, unreadable=unreadable, refused=refused, seed=seed
        )

    singly = run(PumpBounds(batch_min=1, batch_max=1))
    small, large = sizes
    together = run(PumpBounds(batch_min=small, batch_max=large, flights_max=flights_max))
    assert together[0] == singly[0]
    assert together[1:] == singly[1:]


def test_the_comparison_sees_a_batch_that_differs(memory_template: Engine) -> None:
    raw = texts(Random(3), amount=20)
    bounds = PumpBounds()
    nothing: dict[str, Any] = {"unreadable": set(), "refused": frozenset(), "seed": 1}
    whole = through(memory_template, raw, bounds, **nothing)
    poisoned = through(memory_template, raw, bounds, **{**nothing, "unreadable": {1}})
    for one, other in zip(whole[:2], poisoned[:2], strict=True):
        assert one != other
    assert whole[2] == poisoned[2]


@pytest.mark.parametrize("size", [1, 50])
def test_a_busy_pump_marks_in_few_statements_and_a_resting_one_at_once(
    memory_store: SqlStore, size: int
) -> None:
    line = Line(memory_store, bounds=PumpBounds(batch_min=size, batch_max=size))
    line.receive(texts(Random(5), amount=120))
    run_to_the_end(line)
    assert line.mailbox.marked == set(range(1, 121))
    assert line.mailbox.mark_statements <= 10
    assert line.store.reads.counts().unmarked == 0
