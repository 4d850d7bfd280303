"""One ordered target: pending events in EVENT_ID order (spec 4.2)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import BigInteger, String, bindparam, select

from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.ports import Acknowledged, EventFailure, OutboxEntry
from msgexchange.store.delivery_marks import move_mark
from msgexchange.store.pending import IS_PENDING, STATE, PendingEvents, cut, sent_row
from msgexchange.store.sessions import Sessions
from msgexchange.store.transaction import check_fence, leader_transaction

_OLDEST = (
    select(STATE.event_id, STATE.payload_bytes)
    .where(IS_PENDING, STATE.target == bindparam("target", type_=String(16)))
    .order_by(STATE.event_id)
    .limit(bindparam("limit"))
)
_TARGET_OF = select(STATE.target).where(STATE.event_id == bindparam("id", type_=BigInteger()))


class Outbox:
    """The ``OutboxStore`` of the own database."""

    def __init__(self, sessions: Sessions, events: PendingEvents) -> None:
        self._sessions = sessions
        self._events = events

    def pending(self, target: Target, *, limit: int, bytes_max: int) -> Sequence[OutboxEntry]:
        with self._sessions.look() as connection:
            oldest = connection.execute(_OLDEST, {"target": target.value, "limit": limit})
            sizes = [(row.event_id, row.payload_bytes) for row in oldest]
            return self._events.entries(connection, cut(sizes, bytes_max))

    def mark_sent(
        self, fence: Fence, sent: Mapping[EventId, Acknowledged], *, now: datetime
    ) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            self._events.mark_sent(
                connection,
                [sent_row(id_, ack.partition, ack.offset, now) for id_, ack in sent.items()],
            )
            if sent:
                # All of one target: a window is.
                target = connection.execute(_TARGET_OF, {"id": max(sent)}).scalar_one()
                move_mark(connection, Target(target), max(sent), now)

    def charge(self, fence: Fence, failure: EventFailure, *, now: datetime) -> None:  # noqa: ARG002
        with leader_transaction(self._sessions, fence) as connection:
            self._events.charge(connection, failure)

    def check_fence(self, fence: Fence) -> None:
        check_fence(self._sessions, fence)
