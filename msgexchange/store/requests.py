"""REQ_TRACK: requests to the AODB, registered and closed under the writer row (spec 5.1)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    String,
    Text,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    update,
)

from msgexchange.flight.events import EventType, Target
from msgexchange.ids import EventId, Fence, MailboxId, RequestId
from msgexchange.lifecycle.request import (
    PlanWanted,
    ReferenceWanted,
    Request,
    RequestState,
    Wanted,
    next_seqn,
)
from msgexchange.ports import Act, MessageFault, NewEvent
from msgexchange.ports.requests import RequestTransaction
from msgexchange.store.audit import AuditRows
from msgexchange.store.bulk import Bulk
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    FAILED,
    PENDING,
    WRITER_ROW,
    pipeline_lock,
    proc_state,
    req_track,
)
from msgexchange.store.transaction import Appender, HeldWriter, leader_transaction
from msgexchange.store.types import Stamp

NO_MESSAGE = MailboxId(0)
"""No mailbox row has this id: an event that no message caused."""

_TRACK = req_track.c
_OPEN = select(req_track).where(_TRACK.open_kind.is_not(None))
_NEWEST = select(req_track).order_by(_TRACK.created_at.desc(), _TRACK.event_id.desc())
_EVERY = _NEWEST.limit(bindparam("limit"))
_OPEN_NEWEST = _NEWEST.where(_TRACK.open_kind.is_not(None)).limit(bindparam("limit"))
_KINDS_BY = select(_TRACK.kind).where(_TRACK.requested_by == bindparam("by", type_=String(200)))
_WAITING = select(func.min(proc_state.c.received_at)).where(
    or_(proc_state.c.state == PENDING, proc_state.c.state == FAILED)
)
_SEQN = select(pipeline_lock.c.next_seqn).where(pipeline_lock.c.name == WRITER_ROW)
_MOVE_SEQN = update(pipeline_lock).where(pipeline_lock.c.name == WRITER_ROW)
_INSERT = insert(req_track)


class RequestRows:
    """Statements on open requests; a transaction is the caller's."""

    def __init__(self, bulk: Bulk) -> None:
        id_ = String(32)
        self._write = bulk.change(
            {
                "request_id": id_,
                "state": String(10),
                "finished_at": Stamp(),
                "days_done": Text(),
                "answer_msg_id": BigInteger(),
                "matched_by": String(16),
                "error": Text(),
            },
            lambda given: (
                update(req_track)
                .where(_TRACK.request_id == given("request_id"), _TRACK.open_kind.is_not(None))
                .values(
                    # The sender may have moved an open one on meanwhile.
                    state=case(
                        (given("finished_at").is_(None), _TRACK.state), else_=given("state")
                    ),
                    open_kind=case((given("finished_at").is_(None), _TRACK.open_kind)),
                    finished_at=given("finished_at"),
                    days_done=given("days_done"),
                    answer_msg_id=given("answer_msg_id"),
                    matched_by=given("matched_by"),
                    error=given("error"),
                )
            ),
        )

    def open(self, connection: Connection) -> Mapping[str, Request]:
        """By kind."""
        return {row.kind: request_of(row) for row in connection.execute(_OPEN)}

    def write(self, connection: Connection, requests: Sequence[Request]) -> None:
        """What answers, errors and time did to open requests; ``MessageFault`` if one is not."""
        rows = [_progress_row(request) for request in requests]
        if self._write(connection, rows) != len(rows):
            raise MessageFault("a request was closed by another while its row was locked")


class Requests:
    """The ``RequestStore`` of the own database."""

    def __init__(
        self,
        sessions: Sessions,
        rows: RequestRows,
        appender: Appender,
        audit: AuditRows,
    ) -> None:
        self._sessions = sessions
        self._rows = rows
        self._appender = appender
        self._audit = audit

    @contextmanager
    def transaction(self) -> Iterator[RequestTransaction]:
        with self._sessions.write() as connection:
            yield self._locked(connection)

    @contextmanager
    def leader_transaction(self, fence: Fence) -> Iterator[RequestTransaction]:
        with leader_transaction(self._sessions, fence) as connection:
            yield self._locked(connection)

    def recent(self, *, every: bool, limit: int) -> Sequence[Request]:
        with self._sessions.look() as connection:
            rows = connection.execute(_EVERY if every else _OPEN_NEWEST, {"limit": limit})
            return [request_of(row) for row in rows]

    def _locked(self, connection: Connection) -> "_Transaction":
        writer = HeldWriter.lock(connection)
        return _Transaction(connection, writer, self._rows, self._appender, self._audit)


class _Transaction:
    """A ``RequestTransaction``; the writer row is held."""

    def __init__(
        self,
        connection: Connection,
        writer: HeldWriter,
        rows: RequestRows,
        appender: Appender,
        audit: AuditRows,
    ) -> None:
        self._connection = connection
        self._writer = writer
        self._rows = rows
        self._appender = appender
        self._audit = audit

    def open_requests(self) -> Mapping[str, Request]:
        return self._rows.open(self._connection)

    def kinds_by(self, requested_by: str) -> frozenset[str]:
        rows = self._connection.execute(_KINDS_BY, {"by": requested_by})
        return frozenset(row.kind for row in rows)

    def oldest_waiting_at(self) -> datetime | None:
        found: datetime | None = self._connection.execute(_WAITING).scalar_one()
        return found

    def take_seqn(self) -> int:
        current: int = self._connection.execute(_SEQN).scalar_one()
        self._connection.execute(_MOVE_SEQN, {"next_seqn": next_seqn(current)})
        return current

    def close(self, request: Request) -> None:
        self._rows.write(self._connection, [request])

    def register(self, request: Request, text: str, *, reason: str | None) -> Request:
        numbered = replace(request, event_id=EventId(self._writer.next_event_id))
        self._connection.execute(_INSERT, _row(numbered))
        self._appender.append(
            self._writer,
            [
                NewEvent(
                    target=Target.MAILBOX_OUT,
                    type=EventType.REQUEST,
                    partition_key=numbered.request_id,
                    flid=None,
                    message_id=NO_MESSAGE,
                    state_version=None,
                    operation_day=None,
                    payload=text.encode(),
                )
            ],
            now=numbered.created_at,
        )
        self._audit.write(
            self._connection,
            Act(
                at=numbered.created_at,
                by=numbered.requested_by,
                act="request",
                subject=f"request {numbered.request_id}",
                reason=reason,
                outcome=f"{numbered.wanted.kind} asked for with SEQN {numbered.seqn}",
                outcomes={},
            ),
        )
        return numbered


def request_of(row: Any) -> Request:
    """The request a REQ_TRACK row holds."""
    return Request(
        request_id=RequestId(row.request_id),
        wanted=_wanted(row),
        state=RequestState(row.state),
        seqn=row.seqn,
        requested_by=row.requested_by,
        created_at=row.created_at,
        event_id=EventId(row.event_id),
        outbound_after=row.outbound_after,
        outbound_id=row.outbound_id,
        sends=row.sends,
        resent=row.resent,
        send_started_at=row.send_started_at,
        sent_at=row.sent_at,
        finished_at=row.finished_at,
        days_done=frozenset(map(date.fromisoformat, (row.days_done or "").split())),
        answer_message_id=None if row.answer_msg_id is None else MailboxId(row.answer_msg_id),
        matched_by=row.matched_by,
        error=row.error,
    )


def _wanted(row: Any) -> Wanted:
    if row.rtype is None:
        return PlanWanted(row.first_day, row.last_day)
    return ReferenceWanted(row.rtype)


def _progress_row(request: Request) -> dict[str, Any]:
    return {
        "request_id": request.request_id,
        "state": request.state.value,
        "finished_at": request.finished_at,
        "days_done": " ".join(sorted(map(str, request.days_done))) or None,
        "answer_msg_id": request.answer_message_id,
        "matched_by": request.matched_by,
        "error": request.error,
    }


def _row(request: Request) -> dict[str, Any]:
    wanted = request.wanted
    plan = wanted if isinstance(wanted, PlanWanted) else None
    return {
        **_progress_row(request),
        "kind": wanted.kind,
        "open_kind": wanted.kind,
        "first_day": plan and plan.first_day,
        "last_day": plan and plan.last_day,
        "rtype": wanted.type if isinstance(wanted, ReferenceWanted) else None,
        "seqn": request.seqn,
        "requested_by": request.requested_by,
        "event_id": request.event_id,
        "sends": request.sends,
        "resent": request.resent,
        "created_at": request.created_at,
    }
