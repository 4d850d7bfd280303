"""The whole store as plain facts, for the invariants (spec 4.7, README)."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import orjson
from sqlalchemy import Connection, literal_column, select, union_all

from msgexchange.codec.encode import encode, parse_content
from msgexchange.flight.events import EventType, Target
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import EventId, Flid, Identity, MailboxId
from msgexchange.lifecycle.states import ErrorClass, EventState, MessageState
from msgexchange.ports import (
    ChangeFact,
    EventFact,
    Kept,
    MessageFact,
    StoreFacts,
    retention_job,
)
from msgexchange.store.flights import Flights
from msgexchange.store.intake import gap
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    flight_change,
    flight_last_version,
    flight_schd,
    inbox_cursor,
    inbox_gap,
    job_run,
    msg_event,
    msg_event_state,
    proc_state,
    proc_state_hst,
)

FLIGHTS_AT_ONCE = 1_000

_MESSAGE_COLUMNS = (
    "msg_id",
    "state",
    "error_class",
    "error",
    "note",
    "identity_key",
    "sndr",
    "type",
    "styp",
    "seqn",
    "received_at",
    "finished_at",
    "backfill_at",
    "backfill_next_at",
    "replayed_at",
)
_MESSAGES = union_all(
    select(*(proc_state.c[name] for name in _MESSAGE_COLUMNS)),
    select(*(proc_state_hst.c[name] for name in _MESSAGE_COLUMNS)),
)
_EVENTS = (
    select(
        msg_event.c.event_id,
        msg_event.c.target,
        msg_event.c.event_type,
        msg_event.c.flid,
        msg_event.c.msg_id,
        msg_event.c.state_version,
        msg_event_state.c.state,
        msg_event_state.c.superseded_by,
        msg_event_state.c.error,
        msg_event_state.c.sent_at,
        msg_event_state.c.partition_,
        msg_event_state.c.offset_,
    )
    .join_from(msg_event, msg_event_state, msg_event.c.event_id == msg_event_state.c.event_id)
    .order_by(msg_event.c.event_id)
)
_CHANGES = select(flight_change.c.flid, flight_change.c.state_version, flight_change.c.msg_id)
_CURSOR = select(inbox_cursor.c.began_after, inbox_cursor.c.watermark)
_GAPS = select(inbox_gap).order_by(inbox_gap.c.lo)
_FLIDS = select(flight_schd.c.flid).order_by(flight_schd.c.flid)


_IMPORTED = select(flight_change).where(flight_change.c.msg_id == literal_column("0"))
_ENDED = select(flight_last_version.c.flid, flight_last_version.c.state_version)
_KEPT_SINCE = select(job_run.c.job, job_run.c.kept_since).where(job_run.c.kept_since.is_not(None))


class StoreEvidence:
    """The ``Evidence`` of the own database."""

    def __init__(self, sessions: Sessions, flights: Flights) -> None:
        self._sessions = sessions
        self._flights = flights

    def began_after(self) -> int:
        with self._sessions.look() as connection:
            return int(connection.execute(_CURSOR).one().began_after)

    def facts(self) -> StoreFacts:
        with self._sessions.survey() as connection:
            cursor = connection.execute(_CURSOR).one()
            return StoreFacts(
                began_after=cursor.began_after,
                watermark=cursor.watermark,
                messages=[_message(row) for row in connection.execute(_MESSAGES)],
                gaps=[gap(row) for row in connection.execute(_GAPS)],
                events=[_event(row) for row in connection.execute(_EVENTS)],
                changes=[_change(row) for row in connection.execute(_CHANGES)],
                flights=self._all_flights(connection),
                imported=[_imported(row) for row in connection.execute(_IMPORTED)],
                ended={Flid(row.flid): row.state_version for row in connection.execute(_ENDED)},
                kept_since=_kept_since(connection),
            )

    def _all_flights(self, connection: Connection) -> Sequence[FlightState]:
        flids = [Flid(flid) for flid in connection.execute(_FLIDS).scalars()]
        return [
            stored.state
            for start in range(0, len(flids), FLIGHTS_AT_ONCE)
            for stored in self._flights.load(
                connection, flids[start : start + FLIGHTS_AT_ONCE]
            ).values()
        ]


def _imported(row: Any) -> FlightState:
    """What provenance says of a flight that no message brought."""
    said = {name: value for name, _, value in orjson.loads(row.changes)}
    day = said.pop("operationDay", None)
    return FlightState(
        flid=Flid(row.flid),
        operation_day=None if day is None else date.fromisoformat(day),
        status=FlightStatus(said.pop("status")),
        version=row.state_version,
        last_message_id=MailboxId(0),
        content=parse_content(encode(said)),
    )


def _kept_since(connection: Connection) -> Mapping[Kept, datetime]:
    jobs = {retention_job(kept): kept for kept in Kept}
    rows = connection.execute(_KEPT_SINCE)
    return {jobs[row.job]: row.kept_since for row in rows if row.job in jobs}


def _message(row: Any) -> MessageFact:
    key = None if row.type is None else (row.sndr, row.type, row.styp, row.seqn)
    return MessageFact(
        message_id=MailboxId(row.msg_id),
        state=MessageState(row.state),
        error_class=None if row.error_class is None else ErrorClass(row.error_class),
        error=row.error,
        note=row.note,
        identity=None if row.identity_key is None else Identity(row.identity_key),
        business_key=key,
        received_at=row.received_at,
        finished_at=row.finished_at,
        mark_intended=row.backfill_next_at is not None,
        mark_confirmed=row.backfill_at is not None,
        replayed=row.replayed_at is not None,
    )


def _event(row: Any) -> EventFact:
    return EventFact(
        event_id=EventId(row.event_id),
        target=Target(row.target),
        type=EventType(row.event_type),
        flid=None if row.flid is None else Flid(row.flid),
        message_id=MailboxId(row.msg_id),
        state_version=row.state_version,
        state=EventState(row.state),
        superseded_by=None if row.superseded_by is None else EventId(row.superseded_by),
        error=row.error,
        sent_at=row.sent_at,
        place=None if row.partition_ is None else (row.partition_, row.offset_),
    )


def _change(row: Any) -> ChangeFact:
    return ChangeFact(
        flid=Flid(row.flid), version=row.state_version, message_id=MailboxId(row.msg_id)
    )
