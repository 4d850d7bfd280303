"""Flights brought in from another system, and handed out (spec 5.9)."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, String, bindparam, insert, select

from msgexchange.flight.state import FlightState
from msgexchange.ids import Flid
from msgexchange.ports import (
    ChangeRow,
    FlightWrite,
    Imported,
    ImportTransaction,
    NewEvent,
)
from msgexchange.store.acts import raise_fence
from msgexchange.store.pump import PumpStatements, change_row
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import FLID_CHARS, flight_schd, operation_audit
from msgexchange.store.transaction import HeldWriter

FLIGHTS_AT_ONCE = 1_000
BEFORE_ALL = " "
_PAGE = (
    select(flight_schd)
    .where(flight_schd.c.flid > bindparam("after", type_=String(FLID_CHARS)))
    .order_by(flight_schd.c.flid)
    .limit(bindparam("limit"))
)
_AUDIT = insert(operation_audit)


class Imports:
    """The ``ImportStore`` of the own database."""

    def __init__(
        self, sessions: Sessions, statements: PumpStatements, nonce: Callable[[], int]
    ) -> None:
        self._sessions = sessions
        self._run = statements
        self._nonce = nonce

    @contextmanager
    def transaction(self) -> Iterator[ImportTransaction]:
        with self._sessions.write() as connection:
            raise_fence(connection)
            yield _Transaction(connection, HeldWriter.lock(connection), self._run, self._nonce)

    def states(self) -> Iterator[FlightState]:
        after = BEFORE_ALL
        with self._sessions.survey() as connection:
            while rows := connection.execute(
                _PAGE, {"after": after, "limit": FLIGHTS_AT_ONCE}
            ).all():
                for stored in self._run.flights.complete(connection, rows).values():
                    yield stored.state
                after = rows[-1].flid


class _Transaction:
    """An ``ImportTransaction``."""

    def __init__(
        self,
        connection: Connection,
        writer: HeldWriter,
        run: PumpStatements,
        nonce: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._writer = writer
        self._run = run
        self._nonce = nonce

    def known(self, flids: Collection[Flid]) -> Collection[Flid]:
        ended = self._run.last_versions(self._connection, flids)
        return {*self.flights(flids), *(Flid(row.flid) for row in ended)}

    def load(
        self,
        flights: Sequence[FlightState],
        changes: Sequence[ChangeRow],
        events: Sequence[NewEvent],
        *,
        now: datetime,
    ) -> None:
        writes = [FlightWrite(before=None, after=state) for state in flights]
        self._run.flights.write(self._connection, writes, {}, now=now)
        self._run.insert_changes(self._connection, [change_row(one, now) for one in changes])
        self._run.appender.append(self._writer, events, now=now)

    def flights(self, flids: Collection[Flid]) -> Mapping[Flid, FlightState]:
        found = self._run.flights.load(self._connection, flids)
        return {flid: stored.state for flid, stored in found.items()}

    def record(self, imported: Imported) -> None:
        row = {
            "audit_id": self._nonce(),
            "at": imported.at,
            "actor": imported.by,
            "act": "store-import",
            "reason": imported.reason,
            "outcome": imported.outcome,
        }
        self._connection.execute(_AUDIT, row)
