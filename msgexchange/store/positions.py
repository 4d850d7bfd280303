"""What is known to be published, and what a committed position settles (spec 4.2, 4.3)."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, String, bindparam, select

from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.position import Known, Mark, Position
from msgexchange.lifecycle.states import EventState
from msgexchange.store.bulk import Bulk
from msgexchange.store.delivery_marks import move_mark
from msgexchange.store.pending import IS_PENDING, STATE, PendingEvents, recovered_row
from msgexchange.store.schd import KEYS, superseding
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import delivery_mark, msg_event, msg_event_state
from msgexchange.store.transaction import leader_transaction

_TARGET = bindparam("of_target", type_=String(16))
_EVENT = bindparam("of_event", type_=BigInteger())
_FLUSH = bindparam("of_flush", type_=String(36))

_MARK = select(delivery_mark.c.event_id, delivery_mark.c.nonce).where(
    delivery_mark.c.target == _TARGET
)
_KNOWN = (
    select(msg_event.c.nonce, STATE.state, STATE.flush_id)
    .join_from(msg_event, msg_event_state, msg_event.c.event_id == STATE.event_id)
    .where(msg_event.c.event_id == _EVENT, msg_event.c.target == _TARGET)
)
_UP_TO = select(STATE.event_id).where(IS_PENDING, STATE.target == _TARGET, STATE.event_id <= _EVENT)
_FLUSHED = select(STATE.flid, STATE.event_id).where(
    IS_PENDING, STATE.target == _TARGET, STATE.flush_id == _FLUSH
)


class Positions:
    """The ``PositionStore`` of the own database."""

    def __init__(self, sessions: Sessions, bulk: Bulk, events: PendingEvents) -> None:
        self._sessions = sessions
        self._events = events
        self._supersede = bulk.change(KEYS, superseding)

    def mark(self, target: Target) -> Mark | None:
        with self._sessions.look() as connection:
            row = connection.execute(_MARK, {"of_target": target.value}).first()
            return None if row is None else Mark(EventId(row.event_id), row.nonce)

    def known(self, target: Target, event_id: EventId) -> Known | None:
        with self._sessions.look() as connection:
            values = {"of_target": target.value, "of_event": event_id}
            row = connection.execute(_KNOWN, values).one_or_none()
        if row is None:
            return None
        return Known(row.nonce, row.state == EventState.PENDING.value, row.flush_id)

    def settle(self, fence: Fence, target: Target, position: Position, *, now: datetime) -> int:
        with leader_transaction(self._sessions, fence) as connection:
            published = self._published(connection, target, position)
            if published:
                self._events.mark_sent(connection, [recovered_row(id_, now) for id_ in published])
                move_mark(connection, target, position.event_id, now)
            return len(published)

    def _published(self, connection: Connection, target: Target, position: Position) -> list[Any]:
        values = {"of_target": target.value}
        if position.flush_id is None:
            rows = connection.execute(_UP_TO, values | {"of_event": position.event_id})
            return [row.event_id for row in rows]
        flushed = connection.execute(_FLUSHED, values | {"of_flush": position.flush_id}).all()
        stood_for = [
            {"flid": row.flid, "winner": row.event_id, "flush_id": position.flush_id}
            for row in flushed
        ]
        self._supersede(connection, stood_for)
        return [row.event_id for row in flushed]
