"""Who may write: the fence of the leader, and the writer row every event is numbered from (3.5).

The locks are statements of their own, before any read, so that what is read after them is what
every earlier writer left.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Transaction, select, update

from msgexchange.ids import Fence
from msgexchange.lifecycle.states import EventState
from msgexchange.ports import Fenced, NewEvent
from msgexchange.store.bulk import Bulk
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    LEADER_ROW,
    WRITER_ROW,
    msg_event,
    msg_event_state,
    pipeline_lock,
)

_READ_FENCE = select(pipeline_lock.c.fence).where(pipeline_lock.c.name == LEADER_ROW)
_HOLD_FENCE = _READ_FENCE.with_for_update(read=True)
_HOLD_WRITER = (
    select(pipeline_lock.c.next_event_id)
    .where(pipeline_lock.c.name == WRITER_ROW)
    .with_for_update()
)
_MOVE_WRITER = update(pipeline_lock).where(pipeline_lock.c.name == WRITER_ROW)


class WriterRowNotHeld(Exception):
    """An append outside the transaction that locked the writer row: a bug."""


@contextmanager
def leader_transaction(sessions: Sessions, fence: Fence) -> Iterator[Connection]:
    """A write transaction that ends as ``Fenced`` if another process leads.

    No other process can take the lead before it ends.
    """
    with sessions.write() as connection:
        _compare(connection.execute(_HOLD_FENCE).scalar_one(), fence)
        yield connection


def check_fence(sessions: Sessions, fence: Fence) -> None:
    """``Fenced`` if another process leads now."""
    with sessions.look() as connection:
        _compare(connection.execute(_READ_FENCE).scalar_one(), fence)


def _compare(current: int, fence: Fence) -> None:
    if current != fence:
        raise Fenced(f"fence {fence} was overtaken by {current}: another process leads")


@dataclass(slots=True)
class HeldWriter:
    """The writer row, locked until the transaction ends."""

    connection: Connection
    transaction: Transaction | None
    next_event_id: int

    @classmethod
    def lock(cls, connection: Connection) -> "HeldWriter":
        next_event_id = connection.execute(_HOLD_WRITER).scalar_one()
        return cls(connection, connection.get_transaction(), next_event_id)

    @property
    def is_held(self) -> bool:
        return (
            self.transaction is not None
            and self.transaction.is_active
            and self.connection.get_transaction() is self.transaction
        )


class Appender:
    """Appends events; EVENT_ID order is commit order because one transaction appends at a time."""

    def __init__(self, bulk: Bulk, nonce: Callable[[], int]) -> None:
        self._nonce = nonce
        self._insert_events = bulk.insert(msg_event)
        self._insert_states = bulk.insert(msg_event_state)

    def append(self, writer: HeldWriter, events: Sequence[NewEvent], *, now: datetime) -> None:
        """Number and insert the events in their order; ``WriterRowNotHeld`` without the lock."""
        if not writer.is_held:
            raise WriterRowNotHeld("events are appended under the writer row's lock only")
        if not events:
            return
        first = writer.next_event_id
        connection = writer.connection
        self._insert_events(
            connection,
            [_event_row(id_, event, self._nonce(), now) for id_, event in enumerate(events, first)],
        )
        self._insert_states(
            connection, [_state_row(id_, event) for id_, event in enumerate(events, first)]
        )
        writer.next_event_id = first + len(events)
        connection.execute(_MOVE_WRITER, {"next_event_id": writer.next_event_id})


def _event_row(event_id: int, event: NewEvent, nonce: int, now: datetime) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "nonce": nonce,
        "target": event.target.value,
        "event_type": event.type.value,
        "partition_key": event.partition_key,
        "flid": event.flid,
        "msg_id": event.message_id,
        "state_version": event.state_version,
        "operation_day": event.operation_day,
        "payload": None if event.payload is None else event.payload.decode(),
        "redelivery_of": event.redelivery_of,
        "traceparent": event.traceparent,
        "created_at": now,
    }


def _state_row(event_id: int, event: NewEvent) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "target": event.target.value,
        "flid": event.flid,
        "payload_bytes": len(event.payload or b""),
        "state": EventState.PENDING.value,
        "superseded_by": None,
        "redelivered_as": None,
        "flush_id": None,
        "attempts": 0,
        "next_attempt_at": None,
        "error": None,
        "sent_at": None,
        "partition_": None,
        "offset_": None,
    }
