"""MAILBOX:out: the event and its request move together (spec 4.5)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, String, bindparam, case, or_, select, update

from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.request import Request, RequestState
from msgexchange.lifecycle.states import EventState
from msgexchange.ports import EventFailure, MessageFault
from msgexchange.ports.requests import OutboundEntry
from msgexchange.store.pending import IS_PENDING, STATE, PendingEvents, recovered_row
from msgexchange.store.requests import request_of
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import msg_event, msg_event_state, req_track
from msgexchange.store.transaction import check_fence, leader_transaction
from msgexchange.store.types import Stamp

_TRACK = req_track.c
_ID = bindparam("id", type_=String(32))
_NEXT = (
    select(msg_event.c.payload, STATE.attempts, STATE.next_attempt_at, req_track)
    .join_from(msg_event_state, msg_event, msg_event.c.event_id == STATE.event_id)
    .join(req_track, _TRACK.request_id == msg_event.c.partition_key)
    .where(IS_PENDING, STATE.target == bindparam("target", type_=String(16)))
    .order_by(STATE.event_id)
    .limit(1)
)
_BEGIN = (
    update(req_track)
    .where(
        _TRACK.request_id == _ID,
        _TRACK.state.in_([RequestState.REGISTERED.value, RequestState.SENDING.value]),
    )
    .values(
        state=RequestState.SENDING.value,
        sends=_TRACK.sends + 1,
        send_started_at=case(
            (_TRACK.send_started_at.is_(None), bindparam("now", type_=Stamp())),
            else_=_TRACK.send_started_at,
        ),
        outbound_after=case(
            (_TRACK.outbound_after.is_(None), bindparam("after", type_=BigInteger())),
            else_=_TRACK.outbound_after,
        ),
    )
)
_SENT = (
    update(req_track)
    .where(_TRACK.request_id == _ID)
    .values(
        # An answer may have come before we knew that the question was there.
        state=case(
            (_TRACK.state == RequestState.SENDING.value, RequestState.SENT.value),
            else_=_TRACK.state,
        ),
        sent_at=bindparam("now", type_=Stamp()),
        outbound_id=bindparam("row_id", type_=BigInteger()),
    )
)
_FAIL = (
    update(req_track)
    .where(_TRACK.request_id == _ID, _TRACK.open_kind.is_not(None))
    .values(
        state=RequestState.FAILED.value,
        open_kind=None,
        finished_at=bindparam("now", type_=Stamp()),
        error=bindparam("why"),
    )
)
_CANCEL = (
    update(msg_event_state)
    .where(STATE.event_id == bindparam("id", type_=BigInteger()), IS_PENDING)
    .values(state=EventState.CANCELLED.value, next_attempt_at=None, error=bindparam("why"))
)
_LAST_ROW = (
    select(_TRACK.outbound_id)
    .where(_TRACK.outbound_id.is_not(None))
    .order_by(_TRACK.created_at.desc())
    .limit(1)
)
_OFTEN = (
    select(msg_event.c.payload, req_track)
    .join_from(req_track, msg_event, msg_event.c.event_id == _TRACK.event_id)
    .where(
        _TRACK.sends > 1,
        _TRACK.sent_at.is_not(None),
        or_(_TRACK.open_kind.is_not(None), _TRACK.sent_at > bindparam("since", type_=Stamp())),
    )
)


class Outbound:
    """The ``OutboundStore`` of the own database."""

    def __init__(self, sessions: Sessions, events: PendingEvents) -> None:
        self._sessions = sessions
        self._events = events

    def next(self) -> OutboundEntry | None:
        with self._sessions.look() as connection:
            row: Any = connection.execute(_NEXT, {"target": Target.MAILBOX_OUT.value}).one_or_none()
        if row is None:
            return None
        return OutboundEntry(
            EventId(row.event_id), row.payload, row.attempts, row.next_attempt_at, request_of(row)
        )

    def begin(self, fence: Fence, entry: OutboundEntry, *, after: int, now: datetime) -> bool:
        given = {"id": entry.request.request_id, "after": after, "now": now}
        with leader_transaction(self._sessions, fence) as connection:
            return connection.execute(_BEGIN, given).rowcount == 1

    def sent(self, fence: Fence, entry: OutboundEntry, outbound_id: int, *, now: datetime) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            self._events.mark_sent(connection, [recovered_row(entry.event_id, now)])
            given = {"id": entry.request.request_id, "row_id": outbound_id, "now": now}
            connection.execute(_SENT, given)

    def cancel(self, fence: Fence, entry: OutboundEntry, reason: str) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            found = connection.execute(_CANCEL, {"id": entry.event_id, "why": reason})
            if found.rowcount != 1:
                raise MessageFault(f"event {entry.event_id} is not PENDING")

    def charge(
        self,
        fence: Fence,
        entry: OutboundEntry,
        error: str,
        *,
        next_attempt_at: datetime | None,
        closes: bool,
        now: datetime,
    ) -> None:
        failure = EventFailure(entry.event_id, entry.attempts + 1, next_attempt_at, error)
        with leader_transaction(self._sessions, fence) as connection:
            self._events.charge(connection, failure)
            if closes:
                self._fail(connection, entry.request, error, now)

    def last_row(self) -> int | None:
        with self._sessions.look() as connection:
            found: int | None = connection.execute(_LAST_ROW).scalar_one_or_none()
            return found

    def sent_often(self, *, since: datetime) -> Sequence[tuple[Request, str]]:
        with self._sessions.look() as connection:
            rows: Any = connection.execute(_OFTEN, {"since": since})
            return [(request_of(row), row.payload) for row in rows]

    def check_fence(self, fence: Fence) -> None:
        check_fence(self._sessions, fence)

    def _fail(self, connection: Connection, request: Request, why: str, now: datetime) -> None:
        connection.execute(_FAIL, {"id": request.request_id, "why": why, "now": now})
