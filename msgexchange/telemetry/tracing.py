"""The Tracing port on OpenTelemetry: spans built after the outcome, from reserved ids."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags

from msgexchange.clock import Clock
from msgexchange.flight.events import Target
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.states import MessageState
from msgexchange.ports.delivery import OutboxEntry
from msgexchange.ports.tracing import Attempted, Entered
from msgexchange.telemetry.spans import Told, context_of, header_of, new_context, sibling

FLIDS_TOLD_MAX = 10
LINKS_MAX = 128
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

    def working(self, attempts: Sequence[Attempted], *, started_at: datetime) -> "WorkingTrace":
        now = self._clock.now()
        slow = now - started_at > self._rules.slow_after
        traced = [
            TracedAttempt.of(one)
            for one in attempts
            if self._is_traced(one, slow=slow and len(attempts) == 1)
        ]
        return WorkingTrace(self._tell, self._clock, traced, len(attempts), started_at)

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
    ) -> "DeliveringTrace":
        return DeliveringTrace(self._tell, self._clock, name, target, window)


@dataclass(frozen=True, slots=True)
class TracedAttempt:
    """An attempt with the ids its spans will have."""

    told: Attempted
    enqueue: SpanContext
    process: SpanContext
    is_begun: bool
    """Its entry was told already."""

    @classmethod
    def of(cls, attempt: Attempted) -> "TracedAttempt":
        stored = context_of(attempt.entry.traceparent)
        enqueue = stored or new_context(None, sampled=True)
        begun = enqueue.trace_flags.sampled and stored is not None
        enqueue = SpanContext(
            enqueue.trace_id, enqueue.span_id, is_remote=False, trace_flags=TraceFlags(1)
        )
        again = begun or attempt.entry.attempts > 0
        return cls(attempt, enqueue, new_context(enqueue, sampled=True), again)


class WorkingTrace:
    """What one transaction did, per traced message and once for the batch."""

    def __init__(
        self,
        tell: Callable[[Told], None],
        clock: Clock,
        traced: Sequence[TracedAttempt],
        size: int,
        started_at: datetime,
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._traced = traced
        self._size = size
        self._started_at = started_at
        self._decided_at = clock.now()
        self.contexts = {one.told.entry.message_id: header_of(one.process) for one in traced}

    def committed(self) -> None:
        if not self._traced:
            return
        now = self._clock.now()
        batch = new_context(None, sampled=True)
        links = [Link(one.process) for one in self._traced[:LINKS_MAX]]
        about = {"messaging.batch.message_count": self._size}
        self._tell(Told("pump.batch", batch, None, self._started_at, now, about, links=links))
        for one in self._traced:
            for span in self._spans(one, Link(batch), now):
                self._tell(span)

    def _spans(self, one: TracedAttempt, batch: Link, now: datetime) -> Iterator[Told]:
        entry, result = one.told.entry, one.told.result
        flids = one.told.about.flids
        about: dict[str, object] = {"msgexchange.message.id": entry.message_id}
        at = entry.received_at
        if not one.is_begun:
            root = sibling(one.enqueue)
            received = {**about, "messaging.system": "msgexchange_mailbox"}
            received["messaging.operation.type"] = "receive"
            kind = SpanKind.CONSUMER
            yield Told("mailbox.receive", root, None, at, at, received, kind=kind)
            yield Told("inbox.enqueue", one.enqueue, root, at, at, about)
        worked = {
            **about,
            "messaging.operation.type": "process",
            "msgexchange.outcome": result.state.value,
            "msgexchange.kind": one.told.kind,
            "msgexchange.flid": list(flids[:FLIDS_TOLD_MAX]) or None,
            "msgexchange.flights": len(flids),
            "msgexchange.reason": result.error,
            "msgexchange.attempt": result.attempts,
            "msgexchange.next_attempt_at": result.next_attempt_at
            and result.next_attempt_at.isoformat(),
            "error.type": result.error_class and result.error_class.value,
        }
        failed = result.error_class and (result.error_class.value, result.error or "")
        begun = one.told.decoded[0] if one.told.decoded else self._started_at
        yield Told(
            "pump.process",
            one.process,
            one.enqueue,
            begun,
            now,
            worked,
            kind=SpanKind.CONSUMER,
            links=[batch],
            error=failed or None,
        )
        if one.told.decoded:
            yield Told("decode", new_context(one.process), one.process, *one.told.decoded, about)
        yield Told("decide", new_context(one.process), one.process, *one.told.decided, about)
        stored = {**about, "db.operation.name": "commit"}
        commit = new_context(one.process)
        yield Told("commit", commit, one.process, self._decided_at, now, stored)


class DeliveringTrace:
    """A window: one publish span per traced message, in the message's own trace."""

    def __init__(
        self,
        tell: Callable[[Told], None],
        clock: Clock,
        name: str,
        target: Target,
        window: Sequence[OutboxEntry],
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._name = name
        self._target = target
        self._of: dict[str, tuple[SpanContext, SpanContext, list[OutboxEntry]]] = {}
        self._size = len(window)
        self._began_at = clock.now()
        self.entries = [self._traced(entry) for entry in window]

    def _traced(self, entry: OutboxEntry) -> OutboxEntry:
        given = entry.traceparent
        if given is None or not given.endswith("-01"):
            return entry
        known = self._of.get(given)
        if known is None:
            parent = context_of(given)
            if parent is None:
                return entry
            known = self._of[given] = (parent, new_context(parent), [])
        known[2].append(entry)
        return replace(entry, traceparent=header_of(known[1]))

    def ended(self, *, error: str | None = None) -> None:
        if not self._of:
            return
        now = self._clock.now()
        failed = None if error is None else ("delivery", error)
        kafka = {"messaging.system": "kafka", "messaging.operation.type": "send"}
        whole = new_context(None, sampled=True)
        links = [Link(publish) for _, publish, _ in self._of.values()][:LINKS_MAX]
        size = {**kafka, "messaging.batch.message_count": self._size}
        size["msgexchange.target"] = self._target.value
        self._tell(
            Told(self._name, whole, None, self._began_at, now, size, links=links, error=failed)
        )
        for parent, publish, entries in self._of.values():
            about = {
                **kafka,
                "msgexchange.target": self._target.value,
                "msgexchange.message.id": entries[0].message_id,
                "msgexchange.event.id": [entry.event_id for entry in entries[:FLIDS_TOLD_MAX]],
                "msgexchange.flid": [e.flid for e in entries[:FLIDS_TOLD_MAX] if e.flid] or None,
                "messaging.batch.message_count": len(entries),
            }
            self._tell(
                Told(
                    "outbox.publish",
                    publish,
                    parent,
                    self._began_at,
                    now,
                    about,
                    kind=SpanKind.PRODUCER,
                    links=[Link(whole)],
                    error=failed,
                )
            )
