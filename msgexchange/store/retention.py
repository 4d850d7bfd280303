"""Rows that are kept for a time: which of a slice are older, and their deletion (spec 5.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Date,
    Delete,
    Integer,
    Select,
    Table,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from msgexchange.flight.events import Target
from msgexchange.ids import Fence
from msgexchange.ports import Kept, Slice
from msgexchange.store.bulk import Bulk, ChangeRows, Given
from msgexchange.store.messages import IS_OPEN
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    DEAD,
    PENDING,
    attempt_log,
    delivery_mark,
    flight_change,
    inbox_cursor,
    inbox_gap,
    msg_event,
    msg_event_state,
    operation_audit,
    proc_state,
    schd_snap_log,
)
from msgexchange.store.transaction import leader_transaction
from msgexchange.store.types import Stamp

GAPS_NEAR_W = 10_000
"""Ids below W whose ledger rows stay, however old: a mailbox may stand still for long."""

_BEFORE = bindparam("older_than", type_=Stamp)
_AFTER = bindparam("after", type_=BigInteger())
_YES: ColumnElement[int] = literal_column("1")
_NO: ColumnElement[int] = literal_column("0")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A page of ``place`` (grows from page to page), ``is_old``, ``goes``; and where the rows of a
    place lie.
    """

    page: Select[Any]
    delete: Sequence[tuple[Table, str]]


def _flag(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, _YES), else_=_NO)


def _page(
    place: ColumnElement[Any], is_old: ColumnElement[bool], goes: ColumnElement[bool]
) -> Select[Any]:
    return (
        select(
            place.label("place"),
            _flag(is_old).label("is_old"),
            _flag(and_(is_old, goes)).label("goes"),
        )
        .where(place > _AFTER)
        .order_by(place)
        .limit(bindparam("limit", type_=Integer()))
    )


def _changes() -> _Kind:
    row = flight_change.c
    old = func.max(row.changed_at) < _BEFORE
    return _Kind(_page(row.msg_id, old, old).group_by(row.msg_id), [(flight_change, "msg_id")])


def _sent_events() -> _Kind:
    """Not the event that the topic's position stands for: the next start looks it up.

    A dead request is never sent again, so nobody waits for it.
    """
    event, state = msg_event.c, msg_event_state.c
    over = or_(
        state.state.not_in([PENDING, DEAD]),
        state.redelivered_as.is_not(None),
        and_(state.state == DEAD, state.target == literal_column(f"'{Target.MAILBOX_OUT.value}'")),
    )
    stands = exists(
        select(delivery_mark.c.target).where(
            delivery_mark.c.target == event.target, delivery_mark.c.event_id <= event.event_id
        )
    )
    page = _page(event.event_id, event.created_at < _BEFORE, and_(over, ~stands))
    return _Kind(
        page.join_from(msg_event, msg_event_state, event.event_id == state.event_id),
        [(msg_event_state, "event_id"), (msg_event, "event_id")],
    )


def _plans() -> _Kind:
    row = schd_snap_log.c
    over = or_(row.scope_end.is_(None), row.scope_end < bindparam("older_than_day", type_=Date()))
    return _Kind(_page(row.msg_id, row.received_at < _BEFORE, over), [(schd_snap_log, "msg_id")])


def _audit() -> _Kind:
    """Its ids are in no order: the page is of the oldest."""
    row = operation_audit.c
    page = (
        select(row.audit_id.label("place"), _YES.label("is_old"), _YES.label("goes"))
        .where(row.at < _BEFORE)
        .order_by(row.at)
        .limit(bindparam("limit", type_=Integer()))
    )
    return _Kind(page, [(operation_audit, "audit_id")])


def _attempts() -> _Kind:
    row = attempt_log.c
    is_open = exists(select(proc_state.c.msg_id).where(proc_state.c.msg_id == row.msg_id, IS_OPEN))
    page = _page(row.msg_id, func.max(row.at) < _BEFORE, ~is_open)
    return _Kind(page.group_by(row.msg_id), [(attempt_log, "msg_id")])


def _gaps() -> _Kind:
    row = inbox_gap.c
    watermark = select(inbox_cursor.c.watermark).scalar_subquery()
    over = and_(
        func.count(row.next_look_at) == _NO,
        func.count(row.decided_at) == func.count(row.lo),
        func.max(row.hi) < watermark - literal_column(str(GAPS_NEAR_W)),
    )
    page = _page(row.lo, func.max(row.decided_at) < _BEFORE, over)
    return _Kind(page.group_by(row.lo), [(inbox_gap, "lo")])


_KINDS: Mapping[Kept, _Kind] = {
    Kept.CHANGES: _changes(),
    Kept.SENT_EVENTS: _sent_events(),
    Kept.PLANS: _plans(),
    Kept.AUDIT: _audit(),
    Kept.ATTEMPTS: _attempts(),
    Kept.GAPS: _gaps(),
}


class RetentionRows:
    """The ``RetentionStore`` of the own database."""

    def __init__(self, sessions: Sessions, bulk: Bulk) -> None:
        self._sessions = sessions
        self._delete = {
            kept: [_delete(bulk, table, key) for table, key in kind.delete]
            for kept, kind in _KINDS.items()
        }

    def drop(
        self, fence: Fence, kept: Kept, *, older_than: datetime, after: int, limit: int
    ) -> Slice:
        given = {
            "older_than": older_than,
            "older_than_day": older_than.date(),
            "after": after,
            "limit": limit,
        }
        with leader_transaction(self._sessions, fence) as connection:
            page = connection.execute(_KINDS[kept].page, given).all()
            going = [{"place": row.place} for row in page if row.goes]
            deleted = [delete_rows(connection, going) for delete_rows in self._delete[kept]]
        there_may_be_more = len(page) == limit and any(row.is_old for row in page)
        return Slice(deleted[-1], page[-1].place if there_may_be_more else None)


def _delete(bulk: Bulk, table: Table, key: str) -> ChangeRows:
    def build(given: Given) -> Delete:
        return delete(table).where(table.c[key] == given("place"))

    return bulk.change({"place": BigInteger()}, build)
