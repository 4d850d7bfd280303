"""KAFKA:msg: every change, in order, none overtaking another (spec 4.2, at-least-once)."""

from collections.abc import Sequence
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.pipeline.delivery import (
    Charges,
    DeliveryRules,
    acknowledged,
    pause_after,
    pause_of,
    send,
    undelivered,
    window_of,
)
from msgexchange.pipeline.step import PauseS
from msgexchange.ports import (
    Acknowledged,
    Dependency,
    OutboxEntry,
    OutboxStore,
    RecordProducer,
    RecordRefused,
    Telemetry,
    Unavailable,
)
from msgexchange.ports.tracing import UNTRACED, Tracing


class Dispatch:
    """One window a step: sent, acknowledged, its contiguous acknowledged prefix marked SENT."""

    def __init__(
        self,
        *,
        target: Target,
        store: OutboxStore,
        producer: RecordProducer,
        clock: Clock,
        fence: Fence,
        generation: int,
        rules: DeliveryRules,
        idle_poll: timedelta,
        telemetry: Telemetry,
        tracing: Tracing = UNTRACED,
    ) -> None:
        self._target = target
        self._store = store
        self._producer = producer
        self._clock = clock
        self._fence = fence
        self._generation = generation
        self._rules = rules
        self._idle_poll = idle_poll
        self._telemetry = telemetry
        self._charges = Charges(store, fence, rules, clock, telemetry)
        self._tracing = tracing

    def step(self) -> PauseS:
        pending = self._store.pending(
            self._target, limit=self._rules.window_max, bytes_max=self._rules.window_bytes_max
        )
        pause = pause_of(pending, now=self._clock.now(), idle_poll=self._idle_poll)
        if pause is not None:
            return pause
        window = window_of(pending, generation=self._generation, rules=self._rules)
        self._dispatch(window)
        return pause_after(window, pending, self._rules)

    def _dispatch(self, window: Sequence[OutboxEntry]) -> None:
        self._store.check_fence(self._fence)
        told = self._tracing.delivering("outbox.window", self._target, window)
        answers = send(self._producer, told.entries, generation=self._generation, rules=self._rules)
        told.ended(error=undelivered(answers))
        sent: dict[EventId, Acknowledged] = {}
        acked = acknowledged(answers)
        for entry in window:
            if entry.event_id not in acked:
                break
            sent[entry.event_id] = acked[entry.event_id]
        if sent:
            self._store.mark_sent(self._fence, sent, now=self._clock.now())
            self._telemetry.count("events_sent", len(sent), target=self._target.value)
        if len(sent) == len(window):
            return
        first = window[len(sent)]
        answer = answers[first.event_id]
        if isinstance(answer, RecordRefused):
            self._charges.put(first, answer.reason)
        else:
            reason = undelivered(answers) or "no acknowledgement"
            raise Unavailable(Dependency.BROKER, reason)
