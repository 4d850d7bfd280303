"""Flights past their day, and their leaving FLIGHT_SCHD (spec 5.4)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    Connection,
    Date,
    Delete,
    Select,
    String,
    Table,
    bindparam,
    delete,
    or_,
    select,
)

from msgexchange.flight.state import FlightState
from msgexchange.ids import Fence, Flid
from msgexchange.ports import FlightPlace, NewEvent, StandingFlight, SweepTransaction
from msgexchange.store.bulk import Bulk, ChangeRows, Given
from msgexchange.store.flights import Flights
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import FLID_CHARS, details, flight_last_version, flight_schd
from msgexchange.store.transaction import Appender, HeldWriter, leader_transaction

_FLIGHT = flight_schd.c
_KEY = String(FLID_CHARS)
BEFORE_ALL = " "
"""Below every FLID; not the empty text, which is NULL on Oracle."""

_BY_DAY = (
    select(flight_schd)
    .where(_FLIGHT.operation_day <= bindparam("until", type_=Date()))
    .order_by(_FLIGHT.operation_day, _FLIGHT.flid)
    .limit(bindparam("limit"))
)
_BEHIND = _BY_DAY.where(
    _FLIGHT.operation_day >= bindparam("day", type_=Date()),
    or_(
        _FLIGHT.operation_day > bindparam("day", type_=Date()),
        _FLIGHT.flid > bindparam("flid", type_=_KEY),
    ),
)
_WITHOUT_DAY = (
    select(flight_schd)
    .where(
        _FLIGHT.operation_day.is_(None),
        _FLIGHT.updated_at <= bindparam("silent_since", type_=_FLIGHT.updated_at.type),
        _FLIGHT.flid > bindparam("flid", type_=_KEY),
    )
    .order_by(_FLIGHT.flid)
    .limit(bindparam("limit"))
)


class Removal:
    """Statements by which flights leave, built once; a transaction is the caller's."""

    def __init__(self, bulk: Bulk) -> None:
        self._changed_at = bulk.select(
            _KEY, lambda among: select(_FLIGHT.flid, _FLIGHT.updated_at).where(among(_FLIGHT.flid))
        )
        self._delete = [
            _delete_by_flid(bulk, table)
            for table in (flight_schd, *details.values(), flight_last_version)
        ]
        self._remember = bulk.insert(flight_last_version)

    def changed_at(
        self, connection: Connection, flids: Collection[Flid]
    ) -> Mapping[Flid, datetime]:
        """When each of these flights last changed."""
        return {Flid(row.flid): row.updated_at for row in self._changed_at(connection, flids)}

    def remove(
        self, connection: Connection, last: Collection[FlightState], *, now: datetime
    ) -> None:
        """Delete these flights with their details; remember the version each ended with."""
        keys = [{"flid": state.flid} for state in last]
        for delete_rows in self._delete:
            delete_rows(connection, keys)
        self._remember(
            connection,
            [
                {"flid": state.flid, "state_version": state.version, "ended_at": now}
                for state in last
            ],
        )


class Sweeping:
    """The ``SweepStore`` of the own database."""

    def __init__(
        self, sessions: Sessions, flights: Flights, removal: Removal, appender: Appender
    ) -> None:
        self._sessions = sessions
        self._flights = flights
        self._removal = removal
        self._appender = appender

    def standing(
        self, *, until: date, silent_since: datetime, after: FlightPlace | None, limit: int
    ) -> Sequence[StandingFlight]:
        found: list[StandingFlight] = []
        with self._sessions.read() as connection:
            if after is None:
                found += self._page(connection, _BY_DAY, {"until": until, "limit": limit})
            elif after.day is not None:
                at = {"until": until, "day": after.day, "flid": after.flid, "limit": limit}
                found += self._page(connection, _BEHIND, at)
            if len(found) < limit:
                behind = after.flid if after is not None and after.day is None else BEFORE_ALL
                left = limit - len(found)
                at = {"silent_since": silent_since, "flid": behind, "limit": left}
                found += self._page(connection, _WITHOUT_DAY, at)
        return found

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[SweepTransaction]:
        with leader_transaction(self._sessions, fence) as connection:
            yield _Transaction(
                connection,
                HeldWriter.lock(connection),
                flights=self._flights,
                removal=self._removal,
                appender=self._appender,
            )

    def _page(
        self, connection: Connection, query: Select[Any], at: Mapping[str, Any]
    ) -> list[StandingFlight]:
        rows = connection.execute(query, at).all()
        found = self._flights.complete(connection, rows)
        return [StandingFlight(found[row.flid].state, row.updated_at) for row in rows]


class _Transaction:
    """A ``SweepTransaction``; the fence and the writer row are held."""

    def __init__(
        self,
        connection: Connection,
        writer: HeldWriter,
        *,
        flights: Flights,
        removal: Removal,
        appender: Appender,
    ) -> None:
        self._connection = connection
        self._writer = writer
        self._flights = flights
        self._removal = removal
        self._appender = appender

    def flights(self, flids: Collection[Flid]) -> Mapping[Flid, StandingFlight]:
        found = self._flights.load(self._connection, flids)
        changed_at = self._removal.changed_at(self._connection, list(flids))
        return {
            flid: StandingFlight(flight.state, changed_at[flid]) for flid, flight in found.items()
        }

    def remove(
        self, last: Collection[FlightState], events: Sequence[NewEvent], *, now: datetime
    ) -> None:
        self._removal.remove(self._connection, last, now=now)
        self._appender.append(self._writer, events, now=now)


def _delete_by_flid(bulk: Bulk, table: Table) -> ChangeRows:
    def build(given: Given) -> Delete:
        return delete(table).where(table.c.flid == given("flid"))

    return bulk.change({"flid": _KEY}, build)
