"""Moments in the future that a jump of the database's clock would bring near or far (spec 6.1)."""

from datetime import timedelta

from sqlalchemy import Connection, bindparam, select, update

from msgexchange.store.tables import FAILED, PENDING, msg_event_state, proc_state

_MESSAGE, _EVENT = proc_state.c, msg_event_state.c
_MESSAGES = select(_MESSAGE.msg_id, _MESSAGE.next_attempt_at, _MESSAGE.processing_started_at).where(
    _MESSAGE.state == FAILED
)
_MOVE_MESSAGE = (
    update(proc_state)
    .where(_MESSAGE.msg_id == bindparam("id"), _MESSAGE.state == FAILED)
    .values(next_attempt_at=bindparam("next"), processing_started_at=bindparam("started"))
)
_EVENTS = select(_EVENT.event_id, _EVENT.next_attempt_at).where(
    _EVENT.state == PENDING, _EVENT.next_attempt_at.is_not(None)
)
_MOVE_EVENT = (
    update(msg_event_state)
    .where(_EVENT.event_id == bindparam("id"), _EVENT.state == PENDING)
    .values(next_attempt_at=bindparam("next"))
)


def shift(connection: Connection, by: timedelta) -> int:
    """Only what backs off has such a moment: a handful of rows."""
    messages = [
        {
            "id": row.msg_id,
            "next": row.next_attempt_at + by,
            "started": None
            if row.processing_started_at is None
            else row.processing_started_at + by,
        }
        for row in connection.execute(_MESSAGES)
    ]
    events = [
        {"id": row.event_id, "next": row.next_attempt_at + by}
        for row in connection.execute(_EVENTS)
    ]
    if messages:
        connection.execute(_MOVE_MESSAGE, messages)
    if events:
        connection.execute(_MOVE_EVENT, events)
    return len(messages) + len(events)
