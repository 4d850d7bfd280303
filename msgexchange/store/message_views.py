"""Messages as people see them: inbox or archive, with events, flights and failed attempts."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Select,
    Table,
    bindparam,
    exists,
    select,
    union_all,
)

from msgexchange.codec.encode import parse_content, parse_json
from msgexchange.flight.events import EventType, Target
from msgexchange.ids import EventId, Flid, Identity, MailboxId
from msgexchange.lifecycle.states import ErrorClass, EventState, MessageState
from msgexchange.ports import AttemptView, DeadView, EventView, MessageView, MetaColumns
from msgexchange.store.tables import (
    DEAD,
    attempt_log,
    dead_text,
    flight_change,
    msg_event,
    msg_event_state,
    names_of,
    proc_state,
    proc_state_hst,
)

_ID = bindparam("id", type_=BigInteger())


def _either(inbox: Table, archive: Table) -> Select[Any]:
    return select(
        union_all(
            *(
                select(*(table.c[name] for name in names_of(inbox))).where(table.c.msg_id == _ID)
                for table in (inbox, archive)
            )
        ).subquery("m")
    )


_MESSAGE = _either(proc_state, proc_state_hst)
_FLIDS = (
    select(flight_change.c.flid).where(flight_change.c.msg_id == _ID).order_by(flight_change.c.flid)
)
_EVENTS = (
    select(
        msg_event.c.event_type,
        msg_event.c.state_version,
        msg_event.c.created_at,
        *msg_event_state.columns,
    )
    .join_from(msg_event, msg_event_state, msg_event.c.event_id == msg_event_state.c.event_id)
    .where(msg_event.c.msg_id == _ID)
    .order_by(msg_event.c.event_id)
)
_ATTEMPTS = (
    select(attempt_log)
    .where(attempt_log.c.msg_id == _ID)
    .order_by(attempt_log.c.round, attempt_log.c.attempt)
)
_TEXT_KEPT = exists(select(dead_text.c.msg_id).where(dead_text.c.msg_id == proc_state.c.msg_id))
_DEAD = (
    select(proc_state, _TEXT_KEPT.label("text_kept"))
    .where(proc_state.c.state == DEAD, proc_state.c.discarded_at.is_(None))
    .order_by(proc_state.c.msg_id.desc())
    .limit(bindparam("limit"))
)


def message(connection: Connection, message_id: MailboxId) -> MessageView | None:
    """One message with all that hangs on it; four statements."""
    key = {"id": message_id}
    row: Any = connection.execute(_MESSAGE, key).one_or_none()
    if row is None:
        return None
    return MessageView(
        message_id=MailboxId(row.msg_id),
        state=MessageState(row.state),
        error_class=_error_class(row.error_class),
        last_cause=_error_class(row.last_cause),
        error=row.error,
        note=row.note,
        identity=None if row.identity_key is None else Identity(row.identity_key),
        meta=_meta(row),
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        unknown=() if row.unknown_names is None else tuple(map(str, parse_json(row.unknown_names))),
        kept={} if row.kept is None else parse_content(row.kept),
        marked_at=row.backfill_at,
        mark_error=row.backfill_error,
        received_at=row.received_at,
        started_at=row.processing_started_at,
        finished_at=row.finished_at,
        traceparent=row.traceparent,
        flids=tuple(Flid(flid) for flid in connection.execute(_FLIDS, key).scalars()),
        events=tuple(_event(event) for event in connection.execute(_EVENTS, key)),
        failures=tuple(_attempt(attempt) for attempt in connection.execute(_ATTEMPTS, key)),
    )


def dead(connection: Connection, limit: int) -> Sequence[DeadView]:
    """Dead letters nobody has closed, the newest first."""
    return [_dead(row) for row in connection.execute(_DEAD, {"limit": limit})]


def _dead(row: Any) -> DeadView:
    return DeadView(
        message_id=MailboxId(row.msg_id),
        error_class=ErrorClass(row.error_class),
        last_cause=_error_class(row.last_cause),
        error=row.error,
        meta=_meta(row),
        attempts=row.attempts,
        received_at=row.received_at,
        finished_at=row.finished_at,
        text_kept=bool(row.text_kept),
    )


def _event(row: Any) -> EventView:
    return EventView(
        event_id=EventId(row.event_id),
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
    )


def _attempt(row: Any) -> AttemptView:
    return AttemptView(
        attempt=row.attempt,
        at=row.at,
        error_class=ErrorClass(row.error_class),
        error=row.error or "",
    )


def _meta(row: Any) -> MetaColumns:
    return MetaColumns(sndr=row.sndr, type=row.type, styp=row.styp, seqn=row.seqn, dttm=row.dttm)


def _error_class(name: str | None) -> ErrorClass | None:
    return None if name is None else ErrorClass(name)
