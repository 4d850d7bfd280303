"""Flights come back as they were written; groups that did not change are left alone."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import select, update
from store_builders import DAY, RICH, Lost, abandon, commit, flight, later, lead, moved, new, stored

from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.flight.state import FlightStatus
from msgexchange.ids import Flid
from msgexchange.ports import Batch, FlightWrite, MessageFault
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import details, flight_schd
from strategies import contents


def test_a_flight_of_every_kind_of_value_comes_back_equal(store: SqlStore) -> None:
    fence = lead(store)
    state = flight("900", 3, RICH, operation_day=None, last_message_id=1 << 40)
    commit(store, fence, Batch(messages=(), flights=[new(state)]))
    assert stored(store, fence, ["900"]) == [state]
    assert store.reads.flight(Flid("900")) == state


def test_values_of_4000_characters_come_back_equal(store: SqlStore) -> None:
    fence = lead(store)
    long = "机" * 4000
    state = flight("900", 1, {"RMRK": long, "GTDT": ({"GATE": long, "GTNO": long},)})
    commit(store, fence, Batch(messages=(), flights=[new(state)]))
    assert stored(store, fence, ["900"]) == [state]


def test_an_update_leaves_exactly_the_new_state(store: SqlStore) -> None:
    fence = lead(store)
    before = flight("900", 1, RICH)
    commit(store, fence, Batch(messages=(), flights=[new(before)]))
    write = moved(
        before,
        {"CNCL": "03SEP26", "GTDT": ({"GATE": "B1"},), "ERUT": (), "NEWS": ""},
        status=FlightStatus.DELETED,
        operation_day=None,
    )
    commit(store, fence, Batch(messages=(), flights=[write]), now=later(5))
    assert stored(store, fence, ["900"]) == [write.after]
    with store.engine.connect() as connection:
        row = connection.execute(select(flight_schd)).one()
        left = {
            name: connection.execute(select(table.c.ordinal)).all()
            for name, table in details.items()
        }
    assert (row.created_at, row.updated_at) == (later(0), later(5))
    assert {name: len(rows) for name, rows in left.items() if rows} == {"flight_gate": 1}


def test_groups_that_did_not_change_are_not_rewritten(store: SqlStore) -> None:
    fence = lead(store)
    before = flight("900", 1, RICH)
    commit(store, fence, Batch(messages=(), flights=[new(before)]))
    write = moved(before, {**RICH, "ROUT": ({"STOP": "CTU"},)})
    commit(store, fence, Batch(messages=(), flights=[write]))
    route, gate = details["flight_route_point"], details["flight_gate"]
    with store.engine.connect() as connection:
        routes = connection.execute(select(route.c.route_kind, route.c.record_version)).all()
        gates = connection.execute(select(gate.c.record_version)).scalars().all()
    assert sorted(routes) == [("ERUT", 1), ("ERUT", 1), ("ROUT", 2)]
    assert gates == [1, 1, 1]
    assert stored(store, fence, ["900"]) == [write.after]


def test_many_flights_are_written_and_read_together(store: SqlStore) -> None:
    fence = lead(store)
    states = [flight(f"F{n}", 1, {**RICH, "RMRK": str(n)}) for n in range(60)]
    commit(store, fence, Batch(messages=(), flights=[new(state) for state in states]))
    assert stored(store, fence, [state.flid for state in states]) == states
    writes = [moved(state, {"RMRK": "x"}) for state in states[:30]]
    writes += [new(flight("NEW", 7, RICH))]
    commit(store, fence, Batch(messages=(), flights=writes))
    expected = [write.after for write in writes] + states[30:]
    assert stored(store, fence, [state.flid for state in expected]) == expected


def test_an_abandoned_write_leaves_the_flight_as_it_was(store: SqlStore) -> None:
    fence = lead(store)
    before = flight("900", 1, RICH)
    commit(store, fence, Batch(messages=(), flights=[new(before)]))
    with pytest.raises(Lost):
        abandon(store, fence, Batch(messages=(), flights=[moved(before, {})]))
    assert stored(store, fence, ["900"]) == [before]


def test_a_flight_someone_else_changed_is_not_overwritten(store: SqlStore) -> None:
    fence = lead(store)
    before = flight("900", 1, RICH)
    commit(store, fence, Batch(messages=(), flights=[new(before)]))
    with store.engine.begin() as connection:
        connection.execute(update(flight_schd).values(state_version=9))
    with pytest.raises(MessageFault):
        commit(store, fence, Batch(messages=(), flights=[moved(before, {})]))


def test_a_detail_row_someone_else_removed_is_noticed(store: SqlStore) -> None:
    fence = lead(store)
    before = flight("900", 1, RICH)
    commit(store, fence, Batch(messages=(), flights=[new(before)]))
    with store.engine.begin() as connection:
        connection.execute(details["flight_gate"].delete())
    with pytest.raises(MessageFault, match="flight_gate"):
        commit(store, fence, Batch(messages=(), flights=[moved(before, {})]))


def test_a_page_is_in_flid_order_and_filtered(store: SqlStore) -> None:
    fence = lead(store)
    states = [
        flight("B", 1, RICH),
        flight("A", 1, {}),
        flight("C", 1, {}, status=FlightStatus.DELETED),
        flight("D", 1, {}, operation_day=None),
    ]
    commit(store, fence, Batch(messages=(), flights=[new(state) for state in states]))
    by = {state.flid: state for state in states}
    read = store.reads.flights
    everything = read(operation_day=None, status=None, after=None, limit=10)
    assert everything == [by[Flid(flid)] for flid in "ABCD"]
    page = read(operation_day=None, status="ACTIVE", after=Flid("A"), limit=1)
    assert page == [by[Flid("B")]]
    day = read(operation_day=DAY, status=None, after=None, limit=10)
    assert [state.flid for state in day] == ["A", "B", "C"]
    both = read(operation_day=DAY, status="DELETED", after=None, limit=10)
    assert both == [by[Flid("C")]]
    assert store.reads.flight(Flid("Z")) is None


def other_catalogue(store: SqlStore, *lost: str) -> SqlStore:
    """The same database under a catalogue that lacks these names."""
    full = default_catalogue()
    groups = {name: group for name, group in full.groups.items() if name not in lost}
    return SqlStore(store.engine, replace(full, groups=groups), nonce=lambda: 1)


@pytest.mark.parametrize("learnt", [True, False], ids=["learnt", "lost"])
def test_the_next_write_moves_a_group_the_catalogue_learnt_or_lost(
    store: SqlStore, learnt: bool
) -> None:
    poor = other_catalogue(store, "GTDT", "ROUT", "RMRK")
    first, second = (poor, store) if learnt else (store, poor)
    fence = lead(store)
    before = flight("900", 1, RICH)
    commit(first, fence, Batch(messages=(), flights=[new(before)]))
    assert stored(second, fence, ["900"]) == [before]
    same = moved(before, {**RICH, "STAT": "BRD"})
    commit(second, fence, Batch(messages=(), flights=[same]))
    assert stored(second, fence, ["900"]) == [same.after]
    cleared = moved(same.after, {"STAT": "BRD", "GTDT": ({"GATE": "Z"},)})
    commit(second, fence, Batch(messages=(), flights=[cleared]))
    assert stored(second, fence, ["900"]) == [cleared.after]
    emptied = moved(cleared.after, {})
    commit(second, fence, Batch(messages=(), flights=[emptied]))
    assert stored(second, fence, ["900"]) == [emptied.after]
    with store.engine.connect() as connection:
        for table in details.values():
            assert connection.execute(select(table.c.flid)).all() == []


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(first=contents(), second=contents())
def test_any_content_survives_insert_and_update(
    memory_store: SqlStore, first: dict[str, object], second: dict[str, object]
) -> None:
    _survives(memory_store, first, second)


@pytest.mark.postgres
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(first=contents(), second=contents())
def test_any_content_survives_the_fast_form(
    postgres_store: SqlStore, first: dict[str, object], second: dict[str, object]
) -> None:
    _survives(postgres_store, first, second)


def _survives(store: SqlStore, first: object, second: object) -> None:
    fence = lead(store)
    with store.pump.transaction(fence) as transaction:
        known = transaction.flights([Flid("1")]).get(Flid("1"))
    before = flight("1", 1 if known is None else known.version + 1, first)  # type: ignore[arg-type]
    write = FlightWrite(before=known, after=before)
    commit(store, fence, Batch(messages=(), flights=[write]))
    assert stored(store, fence, ["1"]) == [before]
    after = replace(before, version=before.version + 1, content=second)  # type: ignore[arg-type]
    commit(store, fence, Batch(messages=(), flights=[FlightWrite(before=before, after=after)]))
    assert stored(store, fence, ["1"]) == [after]
