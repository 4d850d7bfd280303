"""Dead events and what goes out in their place (spec 4.6)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, insert, select, update

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.state import FlightState
from msgexchange.ids import EventId, Flid, MailboxId
from msgexchange.ports import DeadEvent, NewEvent, RedeliveryTransaction
from msgexchange.store.flights import Flights
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import DEAD, msg_event, msg_event_state, operation_audit
from msgexchange.store.transaction import Appender, HeldWriter

_STATE = msg_event_state.c
_DEAD = (
    select(msg_event, _STATE.attempts, _STATE.error, _STATE.redelivered_as)
    .join_from(msg_event_state, msg_event, msg_event.c.event_id == _STATE.event_id)
    .where(_STATE.state == DEAD)
)
_OPEN = (
    _DEAD.where(_STATE.redelivered_as.is_(None))
    .order_by(_STATE.event_id.desc())
    .limit(bindparam("limit"))
)
_ONE = _DEAD.where(_STATE.event_id == bindparam("id", type_=BigInteger()))
_NAME_SUCCESSOR = (
    update(msg_event_state)
    .where(_STATE.event_id == bindparam("id", type_=BigInteger()))
    .values(redelivered_as=bindparam("successor", type_=BigInteger()))
)
_AUDIT = insert(operation_audit)


class Redeliveries:
    """The ``Redelivery`` of the own database."""

    def __init__(
        self, sessions: Sessions, flights: Flights, appender: Appender, nonce: Callable[[], int]
    ) -> None:
        self._sessions = sessions
        self._flights = flights
        self._appender = appender
        self._nonce = nonce

    def dead_events(self, *, limit: int) -> Sequence[DeadEvent]:
        with self._sessions.look() as connection:
            return [_dead(row) for row in connection.execute(_OPEN, {"limit": limit})]

    @contextmanager
    def transaction(self) -> Iterator[RedeliveryTransaction]:
        with self._sessions.write() as connection:
            writer = HeldWriter.lock(connection)
            yield _Transaction(connection, writer, self._flights, self._appender, self._nonce)


class _Transaction:
    """A ``RedeliveryTransaction``; the writer row is held."""

    def __init__(
        self,
        connection: Connection,
        writer: HeldWriter,
        flights: Flights,
        appender: Appender,
        nonce: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._writer = writer
        self._flights = flights
        self._appender = appender
        self._nonce = nonce

    def dead(self, event_id: EventId) -> DeadEvent | None:
        row = self._connection.execute(_ONE, {"id": event_id}).one_or_none()
        return None if row is None else _dead(row)

    def flight(self, flid: Flid) -> FlightState | None:
        found = self._flights.load(self._connection, [flid]).get(flid)
        return None if found is None else found.state

    def replace(
        self, dead: DeadEvent, successor: NewEvent, *, by: str, reason: str, now: datetime
    ) -> EventId:
        event_id = EventId(self._writer.next_event_id)
        self._appender.append(self._writer, [successor], now=now)
        self._connection.execute(_NAME_SUCCESSOR, {"id": dead.event_id, "successor": event_id})
        self._connection.execute(
            _AUDIT,
            {
                "audit_id": self._nonce(),
                "at": now,
                "actor": by,
                "act": "redeliver",
                "subject": f"event {dead.event_id}",
                "reason": reason,
                "outcome": f"redelivered-as {event_id}",
            },
        )
        return event_id


def _dead(row: Any) -> DeadEvent:
    return DeadEvent(
        event_id=EventId(row.event_id),
        target=Target(row.target),
        type=EventType(row.event_type),
        partition_key=row.partition_key,
        flid=None if row.flid is None else Flid(row.flid),
        message_id=MailboxId(row.msg_id),
        state_version=row.state_version,
        operation_day=row.operation_day,
        payload=None if row.payload is None else row.payload.encode(),
        traceparent=row.traceparent,
        attempts=row.attempts,
        error=row.error,
        created_at=row.created_at,
        redelivered_as=None if row.redelivered_as is None else EventId(row.redelivered_as),
    )
