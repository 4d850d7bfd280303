"""KAFKA:msg: every change, in order, exactly once (spec 4.2)."""

from collections.abc import Sequence
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.pipeline.delivery import (
    Charges,
    DeliveryRules,
    pause_after,
    pause_of,
    refusal_of,
    window_of,
)
from msgexchange.pipeline.publishing import Publishing
from msgexchange.pipeline.records import record_of
from msgexchange.pipeline.step import PauseS
from msgexchange.ports import (
    OutboxEntry,
    OutboxStore,
    PortError,
    Telemetry,
    WindowRefused,
)
from msgexchange.ports.tracing import UNTRACED, Tracing


class DispatchOnce:
    """One window a step: published with its position, then marked SENT, or not at all."""

    def __init__(
        self,
        *,
        target: Target,
        store: OutboxStore,
        publishing: Publishing,
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
        self._publishing = publishing
        self._clock = clock
        self._fence = fence
        self._generation = generation
        self._rules = rules
        self._idle_poll = idle_poll
        self._telemetry = telemetry
        self._charges = Charges(store, fence, rules, clock, telemetry)
        self._tracing = tracing
        self._singly_up_to: EventId | None = None
        """After a refused window each of its events goes alone: the broker names no culprit."""

    def step(self) -> PauseS:
        self._publishing.settle()
        pending = self._store.pending(
            self._target, limit=self._rules.window_max, bytes_max=self._rules.window_bytes_max
        )
        pause = pause_of(pending, now=self._clock.now(), idle_poll=self._idle_poll)
        if pause is not None:
            self._publishing.keep_alive()
            return pause
        window = self._window(pending)
        self._dispatch(window)
        return pause_after(window, pending, self._rules)

    def _window(self, pending: Sequence[OutboxEntry]) -> list[OutboxEntry]:
        head = pending[0]
        if self._singly_up_to is not None:
            if head.event_id <= self._singly_up_to:
                return [head]
            self._singly_up_to = None
        return window_of(pending, generation=self._generation, rules=self._rules)

    def _dispatch(self, window: Sequence[OutboxEntry]) -> None:
        head = window[0]
        refusal = refusal_of(head, generation=self._generation, rules=self._rules)
        if refusal is not None:
            self._charges.put(head, refusal.reason)
            return
        told = self._tracing.delivering("outbox.window", self._target, window)
        try:
            sent = self._publishing.publish(
                window, [record_of(entry, self._generation) for entry in told.entries]
            )
        except WindowRefused as refused:
            told.ended(error=str(refused))
            if len(window) == 1:
                self._charges.put(head, str(refused))
            else:
                self._singly_up_to = window[-1].event_id
            return
        except PortError as failure:
            told.ended(error=str(failure))
            raise
        told.ended()
        self._store.mark_sent(self._fence, sent, now=self._clock.now())
        self._publishing.marked()
        self._telemetry.count("events_sent", len(sent), target=self._target.value)
