"""Sending again what died: always a new event, never the old id revived (spec 4.6).

An old id would lie below the position and behind its successors. On msg the same payload goes out
again, at the end of the line; on schd the flight's current state does.
"""

from datetime import datetime

from msgexchange.codec.encode import encode
from msgexchange.flight.events import EventType, Target, schd_value
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import EventId
from msgexchange.ports import DeadEvent, NewEvent, Redelivery


class NotRedeliverable(Exception):
    """The event is not dead, or something was sent in its place already; the text says which."""


def redeliver(
    store: Redelivery, event_id: EventId, *, by: str, reason: str, timezone: str, now: datetime
) -> EventId:
    """The id of the event that goes out in place of the dead one; raises ``NotRedeliverable``."""
    with store.transaction() as transaction:
        dead = transaction.dead(event_id)
        if dead is None:
            raise NotRedeliverable(f"event {event_id} is not dead: see `run.py dead --events`")
        if dead.redelivered_as is not None:
            raise NotRedeliverable(f"event {event_id} was redelivered as {dead.redelivered_as}")
        if dead.target is Target.MAILBOX_OUT:
            raise NotRedeliverable(
                f"event {event_id} is a request to the AODB: ask anew with `run.py request`, "
                "which gives it a SEQN of its own"
            )
        if dead.target is Target.SCHD:
            assert dead.flid is not None
            successor = _current(dead, transaction.flight(dead.flid), timezone)
        else:
            successor = _again(dead)
        return transaction.replace(dead, successor, by=by, reason=reason, now=now)


def _again(dead: DeadEvent) -> NewEvent:
    return NewEvent(
        target=dead.target,
        type=dead.type,
        partition_key=dead.partition_key,
        flid=dead.flid,
        message_id=dead.message_id,
        state_version=dead.state_version,
        operation_day=dead.operation_day,
        payload=dead.payload,
        traceparent=dead.traceparent,
        redelivery_of=dead.event_id,
    )


def _current(dead: DeadEvent, flight: FlightState | None, timezone: str) -> NewEvent:
    """The state as it is now; a tombstone where the flight is gone."""
    alive = flight is not None and flight.status is FlightStatus.ACTIVE
    return NewEvent(
        target=dead.target,
        type=EventType.UPSERT if alive else EventType.TOMBSTONE,
        partition_key=dead.partition_key,
        flid=dead.flid,
        message_id=dead.message_id if flight is None else flight.last_message_id,
        state_version=dead.state_version if flight is None else flight.version,
        operation_day=dead.operation_day if flight is None else flight.operation_day,
        payload=encode(schd_value(flight, timezone)) if alive and flight is not None else None,
        traceparent=dead.traceparent,
        redelivery_of=dead.event_id,
    )
