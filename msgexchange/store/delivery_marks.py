"""DELIVERY_MARK: the last event known to be published, per target (spec 4.1)."""

from datetime import datetime

from sqlalchemy import BigInteger, Connection, String, bindparam, insert, select, update

from msgexchange.flight.events import Target
from msgexchange.ids import EventId
from msgexchange.store.tables import delivery_mark, msg_event
from msgexchange.store.types import Stamp

_TARGET = bindparam("of_target", type_=String(16))
_EVENT = bindparam("of_event", type_=BigInteger())
_NOW = bindparam("now", type_=Stamp())

_NONCE = select(msg_event.c.nonce).where(msg_event.c.event_id == _EVENT)
_MOVE_MARK = (
    update(delivery_mark)
    .where(delivery_mark.c.target == _TARGET)
    .values(event_id=_EVENT, nonce=_NONCE.scalar_subquery(), marked_at=_NOW)
)
_FIRST_MARK = insert(delivery_mark).from_select(
    ["target", "event_id", "nonce", "marked_at"],
    select(msg_event.c.target, msg_event.c.event_id, msg_event.c.nonce, _NOW).where(
        msg_event.c.event_id == _EVENT
    ),
)


def move_mark(connection: Connection, target: Target, event_id: EventId, now: datetime) -> None:
    """The target's last published event is this one now."""
    values = {"of_target": target.value, "of_event": event_id, "now": now}
    if connection.execute(_MOVE_MARK, values).rowcount == 0:
        connection.execute(_FIRST_MARK, {"of_event": event_id, "now": now})
