"""KAFKA:schd: the latest state per flight, merged every few seconds (spec 4.3)."""

from collections.abc import Callable
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.flight.events import Target
from msgexchange.ids import Fence
from msgexchange.pipeline.delivery import (
    Charges,
    DeliveryRules,
    acknowledged,
    send,
    undelivered,
)
from msgexchange.pipeline.step import NOW, PauseS
from msgexchange.ports import (
    Dependency,
    RecordProducer,
    RecordRefused,
    SchdStore,
    Telemetry,
    Unavailable,
)
from msgexchange.ports.tracing import UNTRACED, Tracing


class SchdFlush:
    """One flush a step: winners sent, then SENT, and what they stand for SUPERSEDED."""

    def __init__(
        self,
        *,
        store: SchdStore,
        producer: RecordProducer,
        clock: Clock,
        fence: Fence,
        generation: int,
        rules: DeliveryRules,
        flush_period: timedelta,
        new_flush_id: Callable[[], str],
        telemetry: Telemetry,
        tracing: Tracing = UNTRACED,
    ) -> None:
        self._store = store
        self._producer = producer
        self._clock = clock
        self._fence = fence
        self._generation = generation
        self._rules = rules
        self._period_s = flush_period.total_seconds()
        self._new_flush_id = new_flush_id
        self._telemetry = telemetry
        self._charges = Charges(store, fence, rules, clock, telemetry)
        self._tracing = tracing

    def step(self) -> PauseS:
        flush = self._store.begin_flush(
            self._fence,
            flush_id=self._new_flush_id(),
            limit=self._rules.window_max,
            bytes_max=self._rules.window_bytes_max,
            now=self._clock.now(),
        )
        if not flush.winners:
            return self._period_s
        told = self._tracing.delivering("schd.flush", Target.SCHD, flush.winners)
        answers = send(self._producer, told.entries, generation=self._generation, rules=self._rules)
        told.ended(error=undelivered(answers))
        sent = acknowledged(answers)
        self._store.end_flush(self._fence, flush, sent, now=self._clock.now())
        self._telemetry.count("events_sent", len(sent), target="KAFKA:schd")
        is_refused = False
        for entry in flush.winners:
            answer = answers[entry.event_id]
            if isinstance(answer, RecordRefused):
                is_refused = True
                self._charges.put(entry, answer.reason)
        reason = undelivered(answers)
        if is_refused:
            # Whatever was held back behind it is no outage: it goes with the next flush, at once.
            return NOW
        if reason is not None:
            raise Unavailable(Dependency.BROKER, reason)
        return NOW if flush.more else self._period_s
