"""Latest state per flight: who wins a flush, and what becomes of the events it stands for (4.3)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Select,
    String,
    bindparam,
    exists,
    func,
    select,
    update,
)
from sqlalchemy.types import TypeEngine

from msgexchange.ids import EventId, Fence
from msgexchange.ports import Acknowledged, EventFailure, Flush, OutboxEntry
from msgexchange.store.bulk import Among, Bulk, Given
from msgexchange.store.pending import IS_PENDING, STATE, PendingEvents, cut, sent_row
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import FLID_CHARS, PENDING, SCHD, SUPERSEDED, msg_event_state
from msgexchange.store.transaction import check_fence, leader_transaction
from msgexchange.store.types import Stamp

WINDOW_PER_FLIGHT = 4
"""So many pending events per wanted flight are looked at before all of them are."""

IS_WAITING = IS_PENDING & (STATE.target == SCHD)
"""Written as the partial index writes it."""

_newer = msg_event_state.alias("newer")
IS_WINNER = ~exists(
    select(_newer.c.event_id).where(
        _newer.c.state == PENDING,
        _newer.c.target == SCHD,
        _newer.c.flid == STATE.flid,
        _newer.c.event_id > STATE.event_id,
    )
)
_HELD = select(STATE.flid).where(
    IS_WAITING, STATE.next_attempt_at > bindparam("now", type_=Stamp()), IS_WINNER
)
_OFFERED = select(STATE.flid, STATE.event_id).where(IS_WAITING, STATE.flid.not_in(_HELD))
_NEXT_DUE = select(func.min(STATE.next_attempt_at)).where(
    IS_WAITING, STATE.next_attempt_at.is_not(None), IS_WINNER
)
_FLID_OF = select(STATE.flid).where(STATE.event_id == bindparam("id", type_=BigInteger()))


def _longest_waiting(offered: Select[Any]) -> Select[Any]:
    events = offered.subquery("offered")
    first = func.min(events.c.event_id).label("first_id")
    return (
        select(events.c.flid, first, func.count().label("events"))
        .group_by(events.c.flid)
        .order_by(first)
        .limit(bindparam("flights"))
    )


_IN_SIGHT = _longest_waiting(_OFFERED.order_by(STATE.event_id).limit(bindparam("sight")))
_OF_ALL = _longest_waiting(_OFFERED)


class Schd:
    """The ``SchdStore`` of the own database."""

    def __init__(self, sessions: Sessions, bulk: Bulk, events: PendingEvents) -> None:
        self._sessions = sessions
        self._events = events
        row: dict[str, TypeEngine[Any]] = {"flid": String(FLID_CHARS), "winner": BigInteger()}
        self._winners = bulk.select(String(FLID_CHARS), _winners)
        self._claim = bulk.change(row | {"flush_id": String(36)}, _claim)
        self._supersede = bulk.change(row, _supersede)
        self._release = bulk.change(row, _release)

    def begin_flush(
        self, fence: Fence, *, flush_id: str, limit: int, bytes_max: int, now: datetime
    ) -> Flush:
        with leader_transaction(self._sessions, fence) as connection:
            flids = _flights(connection, limit, now)
            winners = {row.flid: row for row in self._winners(connection, flids)}
            chosen = [winners[flid] for flid in flids]
            ids = cut([(row.event_id, row.payload_bytes) for row in chosen], bytes_max)
            claimed = [
                {"flid": row.flid, "winner": row.event_id, "flush_id": flush_id}
                for row in chosen[: len(ids)]
            ]
            self._claim(connection, claimed)
            return Flush(flush_id, self._events.entries(connection, ids))

    def end_flush(
        self, fence: Fence, flush: Flush, sent: Mapping[EventId, Acknowledged], *, now: datetime
    ) -> None:
        delivered = [entry for entry in flush.winners if entry.event_id in sent]
        others = [entry for entry in flush.winners if entry.event_id not in sent]
        with leader_transaction(self._sessions, fence) as connection:
            self._supersede(connection, _keys(delivered))
            self._events.mark_sent(
                connection,
                [sent_row(id_, ack.partition, ack.offset, now) for id_, ack in sent.items()],
            )
            self._release(connection, _keys(others))

    def charge(self, fence: Fence, failure: EventFailure, *, now: datetime) -> None:  # noqa: ARG002
        with leader_transaction(self._sessions, fence) as connection:
            self._events.charge(connection, failure)
            if failure.next_attempt_at is None:
                flid = connection.execute(_FLID_OF, {"id": failure.event_id}).scalar_one()
                self._supersede(connection, [{"flid": flid, "winner": failure.event_id}])

    def check_fence(self, fence: Fence) -> None:
        check_fence(self._sessions, fence)

    def next_due(self) -> datetime | None:
        with self._sessions.look() as connection:
            due: datetime | None = connection.execute(_NEXT_DUE).scalar_one()
            return due


def _flights(connection: Connection, limit: int, now: datetime) -> list[str]:
    """Flights to send, the longest waiting first.

    A look at the oldest events normally shows enough of them; where few flights hold all of what
    is in sight, the whole backlog is grouped.
    """
    sight = limit * WINDOW_PER_FLIGHT
    seen = connection.execute(_IN_SIGHT, {"now": now, "flights": limit, "sight": sight}).all()
    if len(seen) < limit and sum(row.events for row in seen) >= sight:
        seen = connection.execute(_OF_ALL, {"now": now, "flights": limit}).all()
    return [row.flid for row in seen]


def _keys(entries: Sequence[OutboxEntry]) -> list[dict[str, Any]]:
    return [{"flid": entry.flid, "winner": entry.event_id} for entry in entries]


def _winners(among: Among) -> Select[Any]:
    newest = (
        select(func.max(STATE.event_id).label("event_id"))
        .where(IS_WAITING, among(STATE.flid))
        .group_by(STATE.flid)
        .subquery("newest")
    )
    return select(STATE.flid, STATE.event_id, STATE.payload_bytes).join_from(
        newest, msg_event_state, STATE.event_id == newest.c.event_id
    )


def _claim(given: Given) -> Any:
    """The winner and all it stands for; what is appended meanwhile is newer and stays out."""
    return (
        update(msg_event_state)
        .where(IS_WAITING, STATE.flid == given("flid"), STATE.event_id <= given("winner"))
        .values(flush_id=given("flush_id"))
    )


def _supersede(given: Given) -> Any:
    return (
        update(msg_event_state)
        .where(IS_WAITING, STATE.flid == given("flid"), STATE.event_id < given("winner"))
        .values(state=SUPERSEDED, superseded_by=given("winner"), next_attempt_at=None)
    )


def _release(given: Given) -> Any:
    return (
        update(msg_event_state)
        .where(IS_WAITING, STATE.flid == given("flid"), STATE.event_id <= given("winner"))
        .values(flush_id=None)
    )
