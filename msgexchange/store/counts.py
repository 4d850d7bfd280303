"""The flow in numbers (spec 1.5, 6.3)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, literal_column, select

from msgexchange.flight.events import Target
from msgexchange.lifecycle.states import ErrorClass, EventState, MessageState
from msgexchange.ports import StoreCounts
from msgexchange.store.messages import HEADS
from msgexchange.store.tables import (
    DEAD,
    PENDING,
    flight_schd,
    inbox_cursor,
    inbox_gap,
    msg_event,
    msg_event_state,
    proc_state,
    req_track,
)

SENDERS_MAX = 100
"""Names come from messages: more of them would be somebody's mistake or mischief."""

_CURSOR = select(inbox_cursor.c.watermark, inbox_cursor.c.halted_why)
_MESSAGES = select(proc_state.c.state, func.count().label("number")).group_by(proc_state.c.state)
_DEAD = (
    select(proc_state.c.error_class, func.count().label("number"))
    .where(proc_state.c.state == DEAD, proc_state.c.discarded_at.is_(None))
    .group_by(proc_state.c.error_class)
)
_EVENTS = (
    select(msg_event_state.c.target, msg_event_state.c.state, func.count().label("number"))
    .where(msg_event_state.c.redelivered_as.is_(None))
    .group_by(msg_event_state.c.target, msg_event_state.c.state)
)
_FLIGHTS = select(func.count(flight_schd.c.flid))
_GAPS = select(
    func.count().label("number"), func.min(inbox_gap.c.first_seen).label("oldest")
).where(inbox_gap.c.decision == literal_column("'OPEN'"))
_PASSED = select(
    func.sum(inbox_gap.c.hi - inbox_gap.c.lo + literal_column("1")).label("ids")
).where(
    inbox_gap.c.decision == literal_column("'PERMANENT'"), inbox_gap.c.step == literal_column("1")
)
_LATE = select(func.count(inbox_gap.c.lo)).where(inbox_gap.c.decision == literal_column("'LATE'"))
_UNMARKED = select(
    func.count(proc_state.c.msg_id).label("number"),
    func.min(proc_state.c.finished_at).label("oldest"),
).where(proc_state.c.backfill_next_at.is_not(None))
_OLDEST_EVENT = select(msg_event.c.created_at).where(
    msg_event.c.event_id
    == select(func.min(msg_event_state.c.event_id))
    .where(msg_event_state.c.state == PENDING)
    .scalar_subquery()
)
_REQUESTS = select(req_track.c.rtype, req_track.c.created_at).where(
    req_track.c.open_kind.is_not(None)
)
_NEWEST = func.max(proc_state.c.received_at)
_SENDERS = (
    select(proc_state.c.sndr, _NEWEST.label("newest"))
    .where(proc_state.c.sndr.is_not(None))
    .group_by(proc_state.c.sndr)
    .order_by(_NEWEST.desc())
    .limit(bindparam("limit"))
)


def counts(connection: Connection) -> StoreCounts:
    """Thirteen statements, however much there is."""
    gaps: Any = connection.execute(_GAPS).one()
    cursor: Any = connection.execute(_CURSOR).one()
    unmarked: Any = connection.execute(_UNMARKED).one()
    requests: Sequence[Any] = connection.execute(_REQUESTS).all()
    head: Any = connection.execute(HEADS, {"limit": 1}).one_or_none()
    return StoreCounts(
        watermark=cursor.watermark,
        halted=cursor.halted_why,
        messages={MessageState(row.state): row.number for row in connection.execute(_MESSAGES)},
        dead_by_class={
            ErrorClass(row.error_class): row.number for row in connection.execute(_DEAD)
        },
        events={
            (Target(row.target), EventState(row.state)): row.number
            for row in connection.execute(_EVENTS)
        },
        flights=connection.execute(_FLIGHTS).scalar_one(),
        open_gaps=gaps.number,
        oldest_gap_first_seen=gaps.oldest,
        permanent_ids=int(connection.execute(_PASSED).scalar_one() or 0),
        late=connection.execute(_LATE).scalar_one(),
        head_received_at=None if head is None else head.received_at,
        unmarked=unmarked.number,
        oldest_unmarked_at=unmarked.oldest,
        oldest_pending_event_at=connection.execute(_OLDEST_EVENT).scalar_one_or_none(),
        open_requests=Counter("plan" if one.rtype is None else "reference" for one in requests),
        oldest_request_at=min((one.created_at for one in requests), default=None),
        last_received={
            row.sndr: row.newest for row in connection.execute(_SENDERS, {"limit": SENDERS_MAX})
        },
    )
