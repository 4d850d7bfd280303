"""FLIGHT_HST: past flights in the own database (spec 5.4, history store ``table``)."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, String, bindparam, delete, select

from msgexchange.codec.encode import encode
from msgexchange.codec.state_form import read_state, state_document
from msgexchange.flight.past import PastFlight
from msgexchange.ids import Flid
from msgexchange.ports import HistoryFailed, MessageFault
from msgexchange.store.bulk import Bulk, Given
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import FLID_CHARS, flight_hst

_LIVES = (
    select(flight_hst)
    .where(flight_hst.c.flid == bindparam("id", type_=String(FLID_CHARS)))
    .order_by(flight_hst.c.state_version)
)


class HistoryTable:
    """The ``HistoryStore`` of the own database."""

    def __init__(self, sessions: Sessions, bulk: Bulk) -> None:
        self._sessions = sessions
        self._insert = bulk.insert(flight_hst)
        self._replace = bulk.change(
            {"flid": String(FLID_CHARS), "version": BigInteger()}, _delete_life
        )

    def write(self, flights: Sequence[PastFlight]) -> None:
        keys = [{"flid": past.state.flid, "version": past.state.version} for past in flights]
        try:
            with self._sessions.write() as connection:
                self._replace(connection, keys)
                self._insert(connection, [_row(past) for past in flights])
        except MessageFault as fault:
            raise HistoryFailed(f"FLIGHT_HST takes no flights: {fault}") from fault

    def lives(self, flid: Flid) -> Sequence[PastFlight]:
        try:
            with self._sessions.look() as connection:
                return [
                    PastFlight(read_state(row.flight), row.written_at)
                    for row in connection.execute(_LIVES, {"id": flid})
                ]
        except (MessageFault, ValueError) as fault:
            raise HistoryFailed(f"FLIGHT_HST cannot be read: {fault}") from fault

    def tidy(self) -> bool:
        """A table is always in order."""
        return False


def _delete_life(given: Given) -> Any:
    return delete(flight_hst).where(
        flight_hst.c.flid == given("flid"), flight_hst.c.state_version == given("version")
    )


def _row(past: PastFlight) -> dict[str, Any]:
    return {
        "flid": past.state.flid,
        "state_version": past.state.version,
        "operation_day": past.state.operation_day,
        "flight": encode(state_document(past.state)).decode(),
        "written_at": past.written_at,
    }
