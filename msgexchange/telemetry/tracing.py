"""The Tracing port on OpenTelemetry: what is traced is decided when the outcome is known."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from opentelemetry.trace import SpanKind

from msgexchange.clock import Clock
from msgexchange.flight.events import Target
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.states import MessageState
from msgexchange.ports.delivery import OutboxEntry
from msgexchange.ports.tracing import Attempted, Entered
from msgexchange.telemetry.delivering_trace import DeliveringTrace
from msgexchange.telemetry.spans import Told, context_of, header_of, new_context, sibling
from msgexchange.telemetry.working_trace import TracedAttempt, WorkingTrace

FAILED = frozenset({MessageState.FAILED, MessageState.DEAD})


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRules:
    """``telemetry.traces-per-second`` and ``.slow-after``."""

    per_second: float = 20.0
    slow_after: timedelta = timedelta(seconds=1)


class Allowance:
    """So many traces a second, saved up for one second at most."""

    def __init__(self, per_second: float, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._monotonic = monotonic
        self._left = per_second
        self._at_s = monotonic()

    def take(self) -> bool:
        now_s = self._monotonic()
        most = max(self._per_second, 1.0) if self._per_second else 0.0
        self._left = min(self._left + (now_s - self._at_s) * self._per_second, most)
        self._at_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Tracer:
    """Decides what is traced when the outcome is known, and tells it once it is committed.

    A stored context without the sampled flag: nothing of the message was told so far. What is
    told then begins with its entry, so that no trace misses its root.
    """

    def __init__(self, tell: Callable[[Told], None], rules: TraceRules, clock: Clock) -> None:
        self._tell = tell
        self._rules = rules
        self._clock = clock
        self._allowance = Allowance(rules.per_second, clock.monotonic)

    def origin(self) -> str | None:
        return f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-00"

    def entered(self, traceparent: str | None) -> Entered:
        parent = context_of(traceparent)
        sampled = (parent is not None and parent.trace_flags.sampled) or self._allowance.take()
        return Entered(header_of(new_context(parent, sampled=sampled)), traceparent)

    def received(self, entered: Entered, message_id: MailboxId, *, since: datetime) -> None:
        enqueue = context_of(entered.traceparent)
        if enqueue is None or not enqueue.trace_flags.sampled:
            return
        parent = context_of(entered.parent)
        call = sibling(enqueue)
        now = self._clock.now()
        about = {"msgexchange.message.id": message_id}
        http = {
            "http.request.method": "POST",
            "http.route": "/cminmsgs/send",
            "http.response.status_code": 200,
        }
        name = "POST /cminmsgs/send"
        self._tell(Told(name, call, parent, since, now, {**about, **http}, kind=SpanKind.SERVER))
        self._tell(Told("inbox.enqueue", enqueue, call, since, now, about))

    def working(self, attempts: Sequence[Attempted], *, started_at: datetime) -> WorkingTrace:
        now = self._clock.now()
        slow = now - started_at > self._rules.slow_after
        traced = [
            TracedAttempt.of(one)
            for one in attempts
            if self._is_traced(one, slow=slow and len(attempts) == 1)
        ]
        return WorkingTrace(self._tell, self._clock, traced, len(attempts), started_at)

    def replaying(
        self, attempts: Sequence[Attempted], *, order_id: str, started_at: datetime
    ) -> WorkingTrace:
        traced = [TracedAttempt.anew(one, order_id) for one in attempts]
        return WorkingTrace(
            self._tell, self._clock, traced, len(attempts), started_at, name="pump.replay"
        )

    def _is_traced(self, one: Attempted, *, slow: bool) -> bool:
        given = one.entry.traceparent
        return (
            one.result.state in FAILED
            or one.entry.attempts > 0
            or slow
            or (given is not None and given.endswith("-01"))
            or self._allowance.take()
        )

    def delivering(
        self, name: str, target: Target, window: Sequence[OutboxEntry]
    ) -> DeliveringTrace:
        return DeliveringTrace(self._tell, self._clock, name, target, window)
