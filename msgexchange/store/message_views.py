"""Messages as people see them: inbox or archive, with events, flights and failed attempts."""

from datetime import timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Select,
    Table,
    bindparam,
    cast,
    literal_column,
    null,
    or_,
    select,
    union_all,
)

from msgexchange.codec.encode import parse_content, parse_json
from msgexchange.ids import Flid, Identity, MailboxId
from msgexchange.lifecycle.gap import Gap
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import (
    AttemptView,
    MessageView,
    MetaColumns,
)
from msgexchange.store import audit, change_views, event_views
from msgexchange.store.intake import gap
from msgexchange.store.tables import (
    attempt_log,
    flight_change,
    inbox_gap,
    names_of,
    proc_state,
    proc_state_hst,
)
from msgexchange.store.types import Stamp

CHANGES_TOLD_MAX = 20
GAPS_TOLD_MAX = 5
GAP_SIGHT_IDS = 50_000
"""So far above W a scan sees ids."""
BEHIND_A_GAP = timedelta(seconds=5)
"""What is taken in so soon after a gap closed came from behind it."""

_ID = bindparam("id", type_=BigInteger())


def _either(inbox: Table, archive: Table) -> Select[Any]:
    names = names_of(inbox)
    not_archived = cast(null(), archive.c.archived_at.type).label("archived_at")
    return select(
        union_all(
            select(*(inbox.c[name] for name in names), not_archived).where(inbox.c.msg_id == _ID),
            select(*(archive.c[name] for name in (*names, "archived_at"))).where(
                archive.c.msg_id == _ID
            ),
        ).subquery("m")
    )


_MESSAGE = _either(proc_state, proc_state_hst)
_FLIDS = (
    select(flight_change.c.flid).where(flight_change.c.msg_id == _ID).order_by(flight_change.c.flid)
)
_GAPS = (
    select(inbox_gap)
    .where(
        inbox_gap.c.step == literal_column("1"),
        inbox_gap.c.hi < _ID,
        inbox_gap.c.hi >= bindparam("lowest", type_=BigInteger()),
        or_(
            inbox_gap.c.decided_at.is_(None),
            inbox_gap.c.decided_at >= bindparam("open_at", type_=Stamp()),
        ),
    )
    .order_by(inbox_gap.c.hi.desc())
    .limit(bindparam("limit"))
)
_ATTEMPTS = (
    select(attempt_log)
    .where(attempt_log.c.msg_id == _ID)
    .order_by(attempt_log.c.round, attempt_log.c.attempt)
)


def message(connection: Connection, message_id: MailboxId) -> MessageView | None:
    """One message with all that hangs on it; seven statements."""
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
        events=event_views.of_message(connection, message_id),
        failures=tuple(_attempt(attempt) for attempt in connection.execute(_ATTEMPTS, key)),
        changes=change_views.of_message(connection, message_id, limit=CHANGES_TOLD_MAX),
        gaps=_gaps(connection, row),
        acts=audit.acts_of(connection, message_id, since=row.received_at),
        text_bytes=row.text_bytes,
        discarded_at=row.discarded_at,
        archived_at=row.archived_at,
    )


def _gaps(connection: Connection, row: Any) -> tuple[Gap, ...]:
    """Of what is known of the ids below; whoever came later saw the gap closed."""
    given = {
        "id": row.msg_id,
        "lowest": row.msg_id - GAP_SIGHT_IDS,
        "open_at": row.received_at - BEHIND_A_GAP,
        "limit": GAPS_TOLD_MAX,
    }
    found = (gap(one) for one in connection.execute(_GAPS, given))
    return tuple(one for one in found if one.first_seen <= row.received_at + BEHIND_A_GAP)


def _attempt(row: Any) -> AttemptView:
    return AttemptView(
        round=row.round,
        attempt=row.attempt,
        at=row.at,
        error_class=ErrorClass(row.error_class),
        error=row.error or "",
    )


def _meta(row: Any) -> MetaColumns:
    return MetaColumns(sndr=row.sndr, type=row.type, styp=row.styp, seqn=row.seqn, dttm=row.dttm)


def _error_class(name: str | None) -> ErrorClass | None:
    return None if name is None else ErrorClass(name)
