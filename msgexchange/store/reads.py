"""What people and programs read: each call one consistent read, no lock, no write (spec 1.5)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, TypeAlias

from sqlalchemy import Date, Select, String, bindparam, literal_column, select

from msgexchange.flight.reference import Record, RecordKey
from msgexchange.flight.state import FlightState
from msgexchange.ids import EventId, Flid, MailboxId
from msgexchange.lifecycle.gap import Gap
from msgexchange.lifecycle.states import InboxEntry
from msgexchange.ports import (
    Act,
    ChangeView,
    EventView,
    LeaseView,
    MessageView,
    ReferenceView,
    StoreCounts,
)
from msgexchange.store import audit, change_views, event_views, message_views, references
from msgexchange.store.counts import counts
from msgexchange.store.flights import Flights
from msgexchange.store.intake import gap
from msgexchange.store.leader import Leader
from msgexchange.store.messages import HEADS, inbox_entry
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    FLID_CHARS,
    STORE_ROW,
    flight_schd,
    inbox_gap,
    store_info,
)

_Filter: TypeAlias = tuple[bool, bool]
"""By day, by status."""


def _page(by_day: bool, by_status: bool) -> Select[Any]:  # noqa: FBT001
    page = select(flight_schd).where(
        flight_schd.c.flid > bindparam("after", type_=String(FLID_CHARS))
    )
    if by_day:
        page = page.where(flight_schd.c.operation_day == bindparam("day", type_=Date()))
    if by_status:
        page = page.where(flight_schd.c.status == bindparam("status"))
    return page.order_by(flight_schd.c.flid).limit(bindparam("limit"))


_PAGES: Mapping[_Filter, Select[Any]] = {
    (by_day, by_status): _page(by_day, by_status)
    for by_day in (False, True)
    for by_status in (False, True)
}
_BEFORE_ALL = " "
"""Sorts before every FLID, and is not empty, which some databases take for unknown."""

_LEDGER = select(inbox_gap).order_by(inbox_gap.c.lo.desc()).limit(bindparam("limit"))
_NEEDS_EYES = _LEDGER.where(
    inbox_gap.c.decision.in_([literal_column("'OPEN'"), literal_column("'LATE'")])
)
_PROBE = select(store_info.c.generation).where(store_info.c.name == STORE_ROW)


class StoreReads:
    """The ``Reads`` of the own database."""

    def __init__(
        self,
        sessions: Sessions,
        flights: Flights,
        leader: Leader,
        records: references.ReferenceRows,
    ) -> None:
        self._sessions = sessions
        self._records = records
        self._leader = leader
        self._flights = flights

    def flight(self, flid: Flid) -> FlightState | None:
        with self._sessions.read() as connection:
            found = self._flights.load(connection, [flid]).get(flid)
        return None if found is None else found.state

    def flights(
        self,
        *,
        operation_day: date | None,
        status: str | None,
        after: Flid | None,
        limit: int,
    ) -> Sequence[FlightState]:
        page = _PAGES[operation_day is not None, status is not None]
        given = {"day": operation_day, "status": status}
        wanted = {name: value for name, value in given.items() if value is not None}
        parameters = {"after": after or _BEFORE_ALL, "limit": limit, **wanted}
        with self._sessions.read() as connection:
            rows = connection.execute(page, parameters).all()
            found = self._flights.complete(connection, rows)
        return [flight.state for flight in found.values()]

    def changes(self, flid: Flid) -> Sequence[ChangeView]:
        with self._sessions.look() as connection:
            return change_views.of_flight(connection, flid)

    def message(self, message_id: MailboxId) -> MessageView | None:
        with self._sessions.read() as connection:
            return message_views.message(connection, message_id)

    def event(self, event_id: EventId) -> EventView | None:
        with self._sessions.look() as connection:
            return event_views.event(connection, event_id)

    def events_of(self, flid: Flid, message_ids: Sequence[MailboxId]) -> Sequence[EventView]:
        with self._sessions.look() as connection:
            return event_views.events_of(connection, flid, message_ids)

    def acts_on(self, event_id: EventId) -> Sequence[Act]:
        with self._sessions.look() as connection:
            return audit.acts_about(connection, f"event {event_id}")

    def traceparents(self, message_ids: Sequence[MailboxId]) -> Mapping[MailboxId, str]:
        with self._sessions.look() as connection:
            return event_views.traceparents(connection, message_ids)

    def head(self) -> InboxEntry | None:
        with self._sessions.look() as connection:
            row = connection.execute(HEADS, {"limit": 1}).one_or_none()
            return None if row is None else inbox_entry(row)

    def gaps(self, *, every: bool, limit: int) -> Sequence[Gap]:
        with self._sessions.look() as connection:
            rows = connection.execute(_LEDGER if every else _NEEDS_EYES, {"limit": limit})
            return [gap(row) for row in rows]

    def references(self, type_: str, *, after: str | None, limit: int) -> Sequence[ReferenceView]:
        with self._sessions.look() as connection:
            return references.page(connection, type_, after=after, limit=limit)

    def records(self, keys: Iterable[RecordKey]) -> Mapping[RecordKey, Record]:
        with self._sessions.read() as connection:
            return self._records.load(connection, list(keys))

    def counts(self) -> StoreCounts:
        with self._sessions.read() as connection:
            return counts(connection)

    def leadership(self) -> LeaseView:
        return self._leader.look()

    def probe(self) -> None:
        with self._sessions.look() as connection:
            connection.execute(_PROBE).scalar_one()
