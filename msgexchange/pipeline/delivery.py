"""What both ways to Kafka share: one bounded send, its answers, and what a refusal costs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Protocol

from msgexchange.clock import Clock
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.states import EventState
from msgexchange.pipeline.records import record_bytes, record_of
from msgexchange.pipeline.step import NOW, PauseS
from msgexchange.pipeline.traced import trace_id
from msgexchange.ports import (
    Acknowledged,
    Delivery,
    EventFailure,
    NotDelivered,
    OutboxEntry,
    RecordProducer,
    RecordRefused,
    Telemetry,
)

REFUSED = "REFUSED"
"""The one class of what is charged to an event: outages are charged to none."""
ENVELOPE_BYTES_MAX = 4_000
"""Key and headers of a record take less: most need not be made to know that they fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRules:
    """Bounds of one window, and the failure schedule of an event."""

    window_max: int = 500
    rest_s: PauseS = 0.01
    """After a window that took all there was: what comes meanwhile shares the next one."""
    window_bytes_max: int = 8 << 20
    record_bytes_max: int = 1_000_000
    attempts_max: int = 5
    backoff: Backoff = field(default_factory=Backoff)


def pause_after(
    window: Sequence[OutboxEntry], pending: Sequence[OutboxEntry], rules: DeliveryRules
) -> PauseS:
    """How long a dispatcher rests after this window of what was pending."""
    took_all = len(window) == len(pending) < rules.window_max
    return rules.rest_s if took_all else NOW


def send(
    producer: RecordProducer,
    entries: Sequence[OutboxEntry],
    *,
    generation: int,
    rules: DeliveryRules,
) -> dict[EventId, Delivery]:
    """One answer per event; a record over the size limit is refused before anything leaves."""
    records = [record_of(entry, generation) for entry in entries]
    answers: dict[EventId, Delivery] = {
        entry.event_id: refusal
        for entry in entries
        if (refusal := refusal_of(entry, generation=generation, rules=rules)) is not None
    }
    fitting = [
        (entry, record)
        for entry, record in zip(entries, records, strict=True)
        if entry.event_id not in answers
    ]
    deliveries = producer.send([record for _, record in fitting])
    for (entry, _), delivery in zip(fitting, deliveries, strict=True):
        answers[entry.event_id] = delivery
    return answers


def acknowledged(answers: dict[EventId, Delivery]) -> dict[EventId, Acknowledged]:
    """The events the broker has."""
    return {id_: answer for id_, answer in answers.items() if isinstance(answer, Acknowledged)}


def undelivered(answers: dict[EventId, Delivery]) -> str | None:
    """Why something was not acknowledged without being at fault; None if nothing was."""
    for answer in answers.values():
        if isinstance(answer, NotDelivered):
            return answer.reason
    return None


class ChargingStore(Protocol):
    """Where the events of a target wait."""

    def charge(self, fence: Fence, failure: EventFailure, *, now: datetime) -> None: ...


@dataclass(frozen=True, slots=True)
class Charges:
    """What a refusal costs its event, in a commit of its own: a back-off, or at the limit DEAD."""

    store: ChargingStore
    fence: Fence
    rules: DeliveryRules
    clock: Clock
    telemetry: Telemetry

    def put(self, entry: OutboxEntry, reason: str) -> None:
        now = self.clock.now()
        attempts = entry.attempts + 1
        dies = attempts >= self.rules.attempts_max
        again_at = None if dies else now + self.rules.backoff.after(attempts)
        failure = EventFailure(entry.event_id, attempts, again_at, reason)
        self.store.charge(self.fence, failure, now=now)
        self.telemetry.log(
            "event.failed",
            event_id=entry.event_id,
            message_id=entry.message_id,
            state=(EventState.DEAD if dies else EventState.PENDING).value,
            error_class=REFUSED,
            attempts=attempts,
            next_attempt_at=again_at,
            error=reason,
            trace_id=trace_id(entry.traceparent),
        )
        if dies:
            self.telemetry.alert("dead-event", f"event {entry.event_id}: {reason}")


def pause_of(
    pending: Sequence[OutboxEntry], *, now: datetime, idle_poll: timedelta
) -> PauseS | None:
    """How long an ordered target waits: nothing is there, or its head backs off; None if it is
    due.
    """
    if not pending:
        return idle_poll.total_seconds()
    due_at = pending[0].next_attempt_at
    if due_at is None or due_at <= now:
        return None
    return max((due_at - now).total_seconds(), 0.001)


def refusal_of(
    entry: OutboxEntry, *, generation: int, rules: DeliveryRules
) -> RecordRefused | None:
    """Why the record must not even be tried, None if it may."""
    if len(entry.payload or b"") + ENVELOPE_BYTES_MAX <= rules.record_bytes_max:
        return None
    size = record_bytes(record_of(entry, generation))
    if size <= rules.record_bytes_max:
        return None
    return RecordRefused(
        f"record of {size} bytes is over the topic's limit of {rules.record_bytes_max}"
    )


def window_of(
    pending: Sequence[OutboxEntry], *, generation: int, rules: DeliveryRules
) -> list[OutboxEntry]:
    """The due events up to one that is too large; that one goes alone.

    A refused record must be sent or dead before its successors leave, so whatever is known to be
    refused, or was refused before, never shares a window.
    """
    head = pending[0]

    def alone(entry: OutboxEntry) -> bool:
        refusal = refusal_of(entry, generation=generation, rules=rules)
        return entry.attempts > 0 or entry.next_attempt_at is not None or refusal is not None

    if alone(head):
        return [head]
    return list(takewhile(lambda entry: not alone(entry), pending))
