"""Events as people see them, and the traces they belong to."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Connection, String, bindparam, select, union_all

from msgexchange.flight.events import EventType, Target
from msgexchange.ids import EventId, Flid, MailboxId
from msgexchange.lifecycle.states import EventState
from msgexchange.ports import EventView
from msgexchange.store.tables import (
    FLID_CHARS,
    msg_event,
    msg_event_state,
    proc_state,
    proc_state_hst,
)

_ID = bindparam("id", type_=BigInteger())
_IDS = bindparam("ids", type_=BigInteger(), expanding=True)
_EVENT = select(
    msg_event.c.event_type,
    msg_event.c.msg_id,
    msg_event.c.state_version,
    msg_event.c.redelivery_of,
    msg_event.c.traceparent,
    msg_event.c.created_at,
    *msg_event_state.columns,
).join_from(msg_event, msg_event_state, msg_event.c.event_id == msg_event_state.c.event_id)
_EVENTS = _EVENT.where(msg_event.c.msg_id == _ID).order_by(msg_event.c.event_id)
_ONE_EVENT = _EVENT.where(msg_event.c.event_id == _ID)
_EVENTS_OF = _EVENT.where(
    msg_event.c.flid == bindparam("flid", type_=String(FLID_CHARS)), msg_event.c.msg_id.in_(_IDS)
).order_by(msg_event.c.event_id)
_TRACES = union_all(
    *(
        select(table.c.msg_id, table.c.traceparent).where(
            table.c.msg_id.in_(_IDS), table.c.traceparent.is_not(None)
        )
        for table in (proc_state, proc_state_hst)
    )
)


def event(connection: Connection, event_id: EventId) -> EventView | None:
    """One event and what became of it."""
    row = connection.execute(_ONE_EVENT, {"id": event_id}).one_or_none()
    return None if row is None else _event(row)


def events_of(
    connection: Connection, flid: Flid, message_ids: Sequence[MailboxId]
) -> Sequence[EventView]:
    """What these messages told of this flight, in EVENT_ID order."""
    rows = connection.execute(_EVENTS_OF, {"flid": flid, "ids": list(message_ids)})
    return [_event(row) for row in rows]


def of_message(connection: Connection, message_id: MailboxId) -> tuple[EventView, ...]:
    """What it told, in EVENT_ID order."""
    return tuple(_event(row) for row in connection.execute(_EVENTS, {"id": message_id}))


def traceparents(
    connection: Connection, message_ids: Sequence[MailboxId]
) -> Mapping[MailboxId, str]:
    """The contexts of those that have one."""
    rows = connection.execute(_TRACES, {"ids": list(message_ids)})
    return {MailboxId(row.msg_id): row.traceparent for row in rows}


def _event(row: Any) -> EventView:
    return EventView(
        event_id=EventId(row.event_id),
        message_id=MailboxId(row.msg_id),
        target=Target(row.target),
        type=EventType(row.event_type),
        flid=None if row.flid is None else Flid(row.flid),
        state_version=row.state_version,
        state=EventState(row.state),
        superseded_by=None if row.superseded_by is None else EventId(row.superseded_by),
        attempts=row.attempts,
        error=row.error,
        partition=row.partition_,
        offset=row.offset_,
        created_at=row.created_at,
        sent_at=row.sent_at,
        next_attempt_at=row.next_attempt_at,
        redelivery_of=None if row.redelivery_of is None else EventId(row.redelivery_of),
        redelivered_as=None if row.redelivered_as is None else EventId(row.redelivered_as),
        traceparent=row.traceparent,
    )
