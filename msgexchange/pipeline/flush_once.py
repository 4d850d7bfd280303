"""KAFKA:schd: the latest state per flight, each flush exactly once (spec 4.3).

A flush is claimed in the store under its id before it is sent, and the id goes with the position:
after a crash the position tells whether that flush, and no other, is on the topic.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.flight.events import Target
from msgexchange.ids import Fence
from msgexchange.pipeline.delivery import Charges, DeliveryRules, refusal_of
from msgexchange.pipeline.publishing import Publishing
from msgexchange.pipeline.records import record_of
from msgexchange.pipeline.step import NOW, PauseS
from msgexchange.ports import (
    Flush,
    OutboxEntry,
    PortError,
    SchdStore,
    Telemetry,
    WindowRefused,
)
from msgexchange.ports.tracing import UNTRACED, Tracing


class FlushOnce:
    """One flush a step: published with its id, then its winners SENT and the rest SUPERSEDED."""

    def __init__(
        self,
        *,
        store: SchdStore,
        publishing: Publishing,
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
        self._publishing = publishing
        self._clock = clock
        self._fence = fence
        self._generation = generation
        self._rules = rules
        self._period_s = flush_period.total_seconds()
        self._new_flush_id = new_flush_id
        self._telemetry = telemetry
        self._charges = Charges(store, fence, rules, clock, telemetry)
        self._tracing = tracing
        self._singles = 0
        """After a refused flush so many go out one flight at a time: nobody names the culprit."""

    def step(self) -> PauseS:
        self._publishing.settle()
        flush = self._store.begin_flush(
            self._fence,
            flush_id=self._new_flush_id(),
            limit=1 if self._singles else self._rules.window_max,
            bytes_max=self._rules.window_bytes_max,
            now=self._clock.now(),
        )
        if not flush.winners:
            self._singles = 0
            self._publishing.keep_alive()
            return self._period_s
        self._singles = max(self._singles - 1, 0)
        fitting = self._without_refused(flush)
        if fitting:
            self._send(Flush(flush.flush_id, fitting))
        return NOW if flush.more or self._singles else self._period_s

    def _without_refused(self, flush: Flush) -> Sequence[OutboxEntry]:
        """Those that may be tried; the others are charged, and out of the flush, before it goes."""
        fitting = []
        for entry in flush.winners:
            refusal = refusal_of(entry, generation=self._generation, rules=self._rules)
            if refusal is None:
                fitting.append(entry)
            else:
                self._charges.put(entry, refusal.reason)
        return fitting

    def _send(self, flush: Flush) -> None:
        told = self._tracing.delivering("schd.flush", Target.SCHD, flush.winners)
        try:
            sent = self._publishing.publish(
                flush.winners,
                [record_of(entry, self._generation) for entry in told.entries],
                flush.flush_id,
            )
        except WindowRefused as refused:
            told.ended(error=str(refused))
            if len(flush.winners) == 1:
                self._charges.put(flush.winners[0], str(refused))
            else:
                self._singles = len(flush.winners)
            return
        except PortError as failure:
            told.ended(error=str(failure))
            raise
        told.ended()
        self._store.end_flush(self._fence, flush, sent, now=self._clock.now())
        self._publishing.marked()
        self._telemetry.count("events_sent", len(sent), target="KAFKA:schd")
