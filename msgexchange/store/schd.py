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

from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.ports import Acknowledged, EventFailure, Flush, OutboxEntry
from msgexchange.store.bulk import Bulk, Given
from msgexchange.store.delivery_marks import move_mark
from msgexchange.store.pending import IS_PENDING, STATE, PendingEvents, cut, sent_row
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    FLID_CHARS,
    PENDING,
    SCHD,
    SUPERSEDED,
    found_by_key,
    msg_event_state,
)
from msgexchange.store.transaction import check_fence, leader_transaction
from msgexchange.store.types import Stamp

WINDOW_PER_FLIGHT = 4
"""So many pending events per wanted flight are looked at before all of them are."""

KEYS: Mapping[str, TypeEngine[Any]] = {
    "flid": String(FLID_CHARS),
    "winner": BigInteger(),
    "flush_id": String(36),
}
"""A flight, the event that stands for its older ones, and its flush (a death: None)."""

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
_FLID_OF = select(STATE.flid).where(STATE.event_id == bindparam("id", type_=BigInteger()))


def _longest_waiting(offered: Select[Any]) -> Select[Any]:
    """Flights by their oldest event, each with its winner and how many of the offered events."""
    events = offered.subquery("offered")
    first = func.min(events.c.event_id).label("first_id")
    flights = (
        select(events.c.flid, first, func.count().label("events"))
        .group_by(events.c.flid)
        .order_by(first)
        .limit(bindparam("flights"))
        .subquery("flights")
    )
    waiting = msg_event_state.alias("waiting")
    newest = (
        select(func.max(waiting.c.event_id))
        .where(
            waiting.c.state == PENDING,
            waiting.c.target == SCHD,
            waiting.c.flid == flights.c.flid,
        )
        .scalar_subquery()
    )
    won = select(flights, newest.label("winner")).subquery("won")
    return (
        select(won.c.flid, won.c.events, won.c.winner, STATE.payload_bytes, STATE.attempts)
        .join_from(won, msg_event_state, STATE.event_id == won.c.winner)
        .order_by(won.c.first_id)
    )


_IN_SIGHT = _longest_waiting(_OFFERED.order_by(STATE.event_id).limit(bindparam("sight")))
_OF_ALL = _longest_waiting(_OFFERED)


class Schd:
    """The ``SchdStore`` of the own database."""

    def __init__(self, sessions: Sessions, bulk: Bulk, events: PendingEvents) -> None:
        self._sessions = sessions
        self._events = events
        self._claim = bulk.change({"winner": BigInteger(), "flush_id": String(36)}, _claim)
        self._supersede = bulk.change(KEYS, superseding)
        self._release = bulk.change({"winner": BigInteger()}, _release)

    def begin_flush(
        self, fence: Fence, *, flush_id: str, limit: int, bytes_max: int, now: datetime
    ) -> Flush:
        with leader_transaction(self._sessions, fence) as connection:
            found = _winners(connection, limit, now)
            ids = cut([(row.winner, row.payload_bytes) for row in _together(found)], bytes_max)
            self._claim(connection, [{"winner": id_, "flush_id": flush_id} for id_ in ids])
            more = len(found) == limit or len(ids) < len(found)
            return Flush(flush_id, self._events.entries(connection, ids), more)

    def end_flush(
        self, fence: Fence, flush: Flush, sent: Mapping[EventId, Acknowledged], *, now: datetime
    ) -> None:
        delivered = [entry for entry in flush.winners if entry.event_id in sent]
        others = [entry for entry in flush.winners if entry.event_id not in sent]
        with leader_transaction(self._sessions, fence) as connection:
            self._supersede(connection, _keys(delivered, flush.flush_id))
            self._events.mark_sent(
                connection,
                [sent_row(id_, ack.partition, ack.offset, now) for id_, ack in sent.items()],
            )
            self._release(connection, [{"winner": entry.event_id} for entry in others])
            if sent:
                move_mark(connection, Target.SCHD, max(sent), now)

    def charge(self, fence: Fence, failure: EventFailure, *, now: datetime) -> None:  # noqa: ARG002
        with leader_transaction(self._sessions, fence) as connection:
            self._events.charge(connection, failure)
            if failure.next_attempt_at is None:
                flid = connection.execute(_FLID_OF, {"id": failure.event_id}).scalar_one()
                stood_for = {"flid": flid, "winner": failure.event_id, "flush_id": None}
                self._supersede(connection, [stood_for])

    def check_fence(self, fence: Fence) -> None:
        check_fence(self._sessions, fence)


def _winners(connection: Connection, limit: int, now: datetime) -> Sequence[Any]:
    """The winners of the flights that wait longest, with their sizes and attempts.

    A look at the oldest events normally shows enough flights; where few hold all of what is in
    sight, the whole backlog is grouped.
    """
    sight = limit * WINDOW_PER_FLIGHT
    rows = connection.execute(_IN_SIGHT, {"now": now, "flights": limit, "sight": sight}).all()
    if len(rows) < limit and sum(row.events for row in rows) >= sight:
        rows = connection.execute(_OF_ALL, {"now": now, "flights": limit}).all()
    return rows


def _together(rows: Sequence[Any]) -> Sequence[Any]:
    """Those up to one that was refused before; that one alone, when its turn comes."""
    suspect = next((n for n, row in enumerate(rows) if row.attempts), len(rows))
    return rows[: max(suspect, 1)]


def _keys(entries: Sequence[OutboxEntry], flush_id: str) -> list[dict[str, Any]]:
    return [
        {"flid": entry.flid, "winner": entry.event_id, "flush_id": flush_id} for entry in entries
    ]


def _claim(given: Given) -> Any:
    """The winner carries the flush's id for all it stands for: its flight's older events.

    Those are never sent on their own, so that writing the id on each of them would say nothing
    new and cost most of a flush under backlog.
    """
    return (
        update(msg_event_state)
        .where(STATE.event_id == given("winner"), found_by_key(IS_WAITING))
        .values(flush_id=given("flush_id"))
    )


def superseding(given: Given) -> Any:
    return (
        update(msg_event_state)
        .where(IS_WAITING, STATE.flid == given("flid"), STATE.event_id < given("winner"))
        .values(
            state=SUPERSEDED,
            superseded_by=given("winner"),
            flush_id=given("flush_id"),
            next_attempt_at=None,
        )
    )


def _release(given: Given) -> Any:
    return (
        update(msg_event_state)
        .where(STATE.event_id == given("winner"), found_by_key(IS_WAITING))
        .values(flush_id=None)
    )
