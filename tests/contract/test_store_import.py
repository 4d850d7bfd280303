"""Flights from another system: loaded whole and compared, or not at all (spec 5.9)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select
from store_builders import RICH, T0, flight, lead, receive, stored

from msgexchange.codec.encode import encode
from msgexchange.codec.limits import Limits
from msgexchange.flight.events import schd_value
from msgexchange.flight.past import ended
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.invariants.checker import violations
from msgexchange.invariants.observation import Observation
from msgexchange.pipeline.import_states import (
    ImportOrder,
    ImportRefused,
    import_states,
    read_states,
)
from msgexchange.ports import Fenced
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import msg_event, operation_audit

ZONE = "Asia/Shanghai"
FLIGHTS = [
    flight("1", 7, RICH, last_message_id=4),
    flight("2", 1, {}, operation_day=None),
    flight("3", 3, {"CNCL": ""}, status=FlightStatus.DELETED),
]


def bring(store: SqlStore, states: list[FlightState], *, publishes: bool = False) -> list[int]:
    told: list[int] = []
    order = ImportOrder(by="jl", reason="cut-over", publishes=publishes, timezone=ZONE, at=T0)
    import_states(store.imports, states, order, told.append)
    return told


def exported(store: SqlStore) -> list[bytes]:
    return [encode(schd_value(state, ZONE)) for state in store.imports.states()]


def events(store: SqlStore) -> list[tuple[str, str, int]]:
    with store.engine.connect() as connection:
        rows = connection.execute(select(msg_event).order_by(msg_event.c.event_id))
        return [(row.flid, row.event_type, row.state_version) for row in rows]


def test_imported_flights_are_here_as_they_were_there(store: SqlStore) -> None:
    assert bring(store, FLIGHTS) == [3]
    assert stored(store, lead(store), ["1", "2", "3"]) == FLIGHTS
    assert events(store) == []
    with store.engine.connect() as connection:
        row = connection.execute(select(operation_audit)).one()
    assert (row.actor, row.act, row.reason) == ("jl", "store-import", "cut-over")
    assert row.outcome == "3 flights, not published"


def test_published_flights_go_out_on_schd(store: SqlStore) -> None:
    bring(store, FLIGHTS, publishes=True)
    assert events(store) == [("1", "UPSERT", 7), ("2", "UPSERT", 1), ("3", "TOMBSTONE", 3)]


def test_what_was_exported_comes_back_byte_by_byte(store: SqlStore) -> None:
    lines = [encode(schd_value(state, ZONE)) for state in FLIGHTS]
    bring(store, list(read_states(lines, Limits())))
    assert exported(store) == lines


def test_more_flights_than_one_slice_are_one_import(store: SqlStore) -> None:
    many = [flight(f"{n:05}", 1, {"FLNO": f"CZ{n}"}) for n in range(2_500)]
    assert bring(store, many) == [1_000, 1_000, 500]
    assert list(store.imports.states()) == many


@pytest.mark.parametrize("was", ["stored", "swept"])
def test_a_flight_that_is_known_refuses_all(store: SqlStore, was: str) -> None:
    bring(store, FLIGHTS[:1])
    if was == "swept":
        with store.sweep.transaction(lead(store)) as transaction:
            transaction.remove([ended(FLIGHTS[0])], [], now=T0)
    before = exported(store)
    with pytest.raises(ImportRefused, match="flight 1 is known here already"):
        bring(store, [flight("0", 1, {}), *FLIGHTS])
    assert exported(store) == before
    with store.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(operation_audit)).scalar() == 1


def test_a_flight_that_comes_back_otherwise_refuses_all(store: SqlStore) -> None:
    class Forgetful:
        """A store that loses a field."""

        def __init__(self, transaction: Any) -> None:
            self._transaction = transaction

        def __getattr__(self, name: str) -> Any:
            return getattr(self._transaction, name)

        def flights(self, flids: Any) -> Any:
            found = self._transaction.flights(flids)
            return {
                flid: replace(
                    state, content={k: v for k, v in state.content.items() if k != "FLNO"}
                )
                for flid, state in found.items()
            }

    class Lossy:
        states = store.imports.states

        @contextmanager
        def transaction(self) -> Iterator[Any]:
            with store.imports.transaction() as transaction:
                yield Forgetful(transaction)

    order = ImportOrder(by="jl", reason=None, publishes=False, timezone=ZONE, at=T0)
    with pytest.raises(ImportRefused, match=r"flight 1 came back otherwise.*FLNO"):
        import_states(Lossy(), FLIGHTS, order, lambda _amount: None)
    assert exported(store) == []


def test_who_leads_meanwhile_can_commit_no_more(store: SqlStore) -> None:
    fence = lead(store)
    bring(store, FLIGHTS)
    with pytest.raises(Fenced), store.pump.transaction(fence):
        pass


def test_imported_flights_break_no_invariant(store: SqlStore) -> None:
    bring(store, FLIGHTS, publishes=True)
    lead(store)
    receive(store, 1, at=T0 - timedelta(days=1))
    seen = Observation(
        store=store.evidence.facts(), marks={}, decoded={}, topics=None, drained=False
    )
    assert {name: found for name, found in violations(seen).items() if found} == {}
