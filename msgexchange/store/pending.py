"""Pending events as records carry them, and what a charged failure does to one (spec 4.2, 4.4)."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Select,
    String,
    Text,
    exists,
    select,
    update,
)
from sqlalchemy.types import TypeEngine

from msgexchange.flight.events import EventType
from msgexchange.ids import EventId, Flid, MailboxId
from msgexchange.lifecycle.states import EventState
from msgexchange.ports import EventFailure, MessageFault, OutboxEntry
from msgexchange.store.bulk import Among, Bulk, Given
from msgexchange.store.tables import DEAD, PENDING, SENT, found_by_key, msg_event, msg_event_state
from msgexchange.store.types import Stamp

STATE = msg_event_state.c
IS_PENDING = STATE.state == PENDING

SENT_ROW: dict[str, TypeEngine[Any]] = {
    "event_id": BigInteger(),
    "sent_at": Stamp(),
    "partition_": Integer(),
    "offset_": BigInteger(),
}


class PendingEvents:
    """Statements on events that wait; a transaction is the caller's."""

    def __init__(self, bulk: Bulk) -> None:
        id_ = BigInteger()
        self._select = bulk.select(id_, _entries)
        self._states = bulk.select(
            id_,
            lambda among: select(STATE.event_id, STATE.state).where(among(STATE.event_id)),
        )
        self._sent = bulk.change(SENT_ROW, _sent)
        self._charge = bulk.change(
            {
                "event_id": id_,
                "state": String(10),
                "attempts": Integer(),
                "next_attempt_at": Stamp(),
                "error": Text(),
            },
            _charge,
        )

    def entries(self, connection: Connection, ids: Collection[int]) -> list[OutboxEntry]:
        """These events in EVENT_ID order."""
        rows = self._select(connection, ids)
        return sorted((_entry(row) for row in rows), key=lambda entry: entry.event_id)

    def mark_sent(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        """``MessageFault`` if one of them is neither pending nor sent already.

        Sent already: an earlier call whose commit nobody knew the outcome of.
        """
        if self._sent(connection, rows) == len(rows):
            return
        states = self._states(connection, [row["event_id"] for row in rows])
        other = sorted(row.event_id for row in states if row.state != EventState.SENT.value)
        if other:
            raise MessageFault(f"events {other[:20]} were sent, but are not PENDING here")

    def charge(self, connection: Connection, failure: EventFailure) -> None:
        """PENDING until its next try, or DEAD; ``MessageFault`` if it is not pending."""
        dead = failure.next_attempt_at is None
        row = {
            "event_id": failure.event_id,
            "state": (EventState.DEAD if dead else EventState.PENDING).value,
            "attempts": failure.attempts,
            "next_attempt_at": failure.next_attempt_at,
            "error": failure.error,
        }
        if self._charge(connection, [row]) != 1:
            raise MessageFault(f"event {failure.event_id} failed, but is not PENDING here")


def cut(sizes: Sequence[tuple[int, int]], bytes_max: int) -> list[int]:
    """The first ids whose (id, bytes) add up to at most ``bytes_max``; at least one."""
    taken: list[int] = []
    total = 0
    for id_, size in sizes:
        total += size
        if taken and total > bytes_max:
            break
        taken.append(id_)
    return taken


def sent_row(event_id: EventId, partition: int, offset: int, at: datetime) -> dict[str, Any]:
    return {"event_id": event_id, "sent_at": at, "partition_": partition, "offset_": offset}


def recovered_row(event_id: EventId, at: datetime) -> dict[str, Any]:
    """Sent for certain; where it landed was lost with the answer."""
    return {"event_id": event_id, "sent_at": at, "partition_": None, "offset_": None}


def _entries(among: Among) -> Select[Any]:
    earlier = msg_event_state.alias("earlier")
    previous_is_dead = exists(
        select(earlier.c.event_id).where(
            earlier.c.state == DEAD,
            earlier.c.redelivered_as.is_(None),
            earlier.c.flid == STATE.flid,
            earlier.c.target == STATE.target,
            earlier.c.event_id < STATE.event_id,
        )
    )
    return (
        select(
            msg_event,
            STATE.attempts,
            STATE.next_attempt_at,
            previous_is_dead.label("previous_is_dead"),
        )
        .join_from(msg_event_state, msg_event, msg_event.c.event_id == STATE.event_id)
        .where(among(STATE.event_id), found_by_key(IS_PENDING))
    )


def _entry(row: Any) -> OutboxEntry:
    return OutboxEntry(
        event_id=EventId(row.event_id),
        nonce=row.nonce,
        type=EventType(row.event_type),
        partition_key=row.partition_key,
        flid=None if row.flid is None else Flid(row.flid),
        message_id=MailboxId(row.msg_id),
        state_version=row.state_version,
        operation_day=row.operation_day,
        payload=None if row.payload is None else row.payload.encode(),
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        traceparent=row.traceparent,
        redelivery_of=None if row.redelivery_of is None else EventId(row.redelivery_of),
        previous_is_dead=bool(row.previous_is_dead),
    )


def _sent(given: Given) -> Any:
    return (
        update(msg_event_state)
        .where(STATE.event_id == given("event_id"), found_by_key(IS_PENDING))
        .values(
            state=SENT,
            sent_at=given("sent_at"),
            partition_=given("partition_"),
            offset_=given("offset_"),
            next_attempt_at=None,
        )
    )


def _charge(given: Given) -> Any:
    return (
        update(msg_event_state)
        .where(STATE.event_id == given("event_id"), found_by_key(IS_PENDING))
        .values(
            state=given("state"),
            attempts=given("attempts"),
            next_attempt_at=given("next_attempt_at"),
            error=given("error"),
            flush_id=None,
        )
    )
