"""What changed a flight: provenance, as people see it."""

from typing import Any

import orjson
from sqlalchemy import BigInteger, Connection, String, bindparam, select

from msgexchange.flight.state import Json
from msgexchange.ids import Flid, MailboxId
from msgexchange.ports import ChangeView
from msgexchange.store.tables import FLID_CHARS, flight_change

_OF_FLIGHT = (
    select(flight_change)
    .where(flight_change.c.flid == bindparam("flid", type_=String(FLID_CHARS)))
    .order_by(flight_change.c.state_version)
)
_OF_MESSAGE = (
    select(flight_change)
    .where(flight_change.c.msg_id == bindparam("id", type_=BigInteger()))
    .order_by(flight_change.c.flid)
    .limit(bindparam("limit"))
)


def of_flight(connection: Connection, flid: Flid) -> list[ChangeView]:
    """Every version that is kept, in order."""
    return [_change(row) for row in connection.execute(_OF_FLIGHT, {"flid": flid})]


def of_message(
    connection: Connection, message_id: MailboxId, *, limit: int
) -> tuple[ChangeView, ...]:
    """What it changed, its first flights by FLID."""
    rows = connection.execute(_OF_MESSAGE, {"id": message_id, "limit": limit})
    return tuple(_change(row) for row in rows)


def _change(row: Any) -> ChangeView:
    return ChangeView(
        flid=Flid(row.flid),
        version=row.state_version,
        message_id=MailboxId(row.msg_id),
        at=row.changed_at,
        changes=read_changes(row.changes),
    )


def read_changes(text: str) -> list[tuple[str, Json | None, Json | None]]:
    """Field, old and new value, as FLIGHT_CHANGE keeps them."""
    return [
        (name, _said(old), _said(new))
        for name, old, new in orjson.loads(text)
        # What a message said again as it was is no change.
        if old != new
    ]


def _said(value: Any) -> Json | None:
    return None if value is None else _frozen(value)


def _frozen(value: Any) -> Json:
    match value:
        case list():
            return tuple(map(_frozen, value))
        case dict():
            return {name: _frozen(item) for name, item in value.items()}
        case _:
            return str(value)
