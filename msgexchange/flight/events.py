"""What consumers are told of a decision: the values of spec 1.4, before they become bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from msgexchange.flight.decision import Decision
from msgexchange.flight.messages import Meta
from msgexchange.flight.state import FlightState, FlightStatus


class Target(StrEnum):
    """Where an event goes."""

    MSG = "KAFKA:msg"
    SCHD = "KAFKA:schd"
    MAILBOX_OUT = "MAILBOX:out"


class EventType(StrEnum):
    """UPSERT and TOMBSTONE for schd, NOTICE for msg, REQUEST for the mailbox."""

    UPSERT = "UPSERT"
    TOMBSTONE = "TOMBSTONE"
    NOTICE = "NOTICE"
    REQUEST = "REQUEST"


@dataclass(frozen=True, slots=True)
class FlightEvent:
    """One event of one flight; ``value`` None is a tombstone."""

    target: Target
    type: EventType
    state: FlightState
    value: dict[str, Any] | None


def events_of(decision: Decision, meta: Meta, *, timezone: str) -> Iterator[FlightEvent]:
    """One NOTICE on msg, then one UPSERT or TOMBSTONE on schd."""
    after = decision.after
    yield FlightEvent(Target.MSG, EventType.NOTICE, after, notice_value(decision, meta, timezone))
    if after.status is FlightStatus.DELETED:
        yield FlightEvent(Target.SCHD, EventType.TOMBSTONE, after, None)
    else:
        yield FlightEvent(Target.SCHD, EventType.UPSERT, after, schd_value(after, timezone))


def notice_value(decision: Decision, meta: Meta, timezone: str) -> dict[str, Any]:
    """The ``msg`` value: what one message changed on one flight."""
    after = decision.after
    changes = decision.changes
    deleted = after.status is FlightStatus.DELETED
    return {
        "changes": {
            "cleared": changes.cleared,
            "replaced": changes.replaced,
            "set": changes.set,
        },
        "dttm": meta.dttm,
        "flid": after.flid,
        "kind": "FDEL" if deleted else meta.kind,
        "messageId": after.last_message_id,
        "operationDay": after.operation_day and after.operation_day.isoformat(),
        "seqn": meta.seqn,
        "sndr": meta.sndr,
        "stateVersion": after.version,
        "timezone": timezone,
    }


def schd_value(state: FlightState, timezone: str) -> dict[str, Any]:
    """The ``schd`` value: a flight's whole state; also what the HTTP interface serves."""
    return {
        "flid": state.flid,
        "lastMessageId": state.last_message_id,
        "operationDay": state.operation_day and state.operation_day.isoformat(),
        "state": state.content,
        "stateVersion": state.version,
        "status": state.status.value,
        "timezone": timezone,
    }
