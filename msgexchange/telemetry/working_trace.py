"""What a transaction of the pump tells: spans built after the outcome, from reserved ids."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags

from msgexchange.clock import Clock
from msgexchange.ports.tracing import Attempted
from msgexchange.telemetry.spans import (
    LINKS_MAX,
    NAMED_MAX,
    Told,
    context_of,
    header_of,
    new_context,
    sibling,
)


@dataclass(frozen=True, slots=True)
class TracedAttempt:
    """An attempt with the ids its spans will have."""

    told: Attempted
    above: SpanContext
    """Of its entry or, in a replay, of the root of its new trace."""
    process: SpanContext
    is_begun: bool
    """Its entry was told already."""
    order_id: str | None = None
    """The order that replays it."""
    earlier: SpanContext | None = None
    """What was known of it before this replay."""

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

    @classmethod
    def anew(cls, attempt: Attempted, order_id: str) -> "TracedAttempt":
        """In a trace of its own, linked to the one it had."""
        root = new_context(None, sampled=True)
        earlier = context_of(attempt.entry.traceparent)
        return cls(attempt, root, new_context(root), False, order_id, earlier)


class WorkingTrace:
    """What one transaction did, per traced message and once for the batch."""

    def __init__(
        self,
        tell: Callable[[Told], None],
        clock: Clock,
        traced: Sequence[TracedAttempt],
        size: int,
        started_at: datetime,
        *,
        name: str = "pump.batch",
    ) -> None:
        self._name = name
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
        self._tell(Told(self._name, batch, None, self._started_at, now, about, links=links))
        for one in self._traced:
            for span in self._spans(one, Link(batch), now):
                self._tell(span)

    def _spans(self, one: TracedAttempt, batch: Link, now: datetime) -> Iterator[Told]:
        entry, result = one.told.entry, one.told.result
        flids = one.told.about.flids
        about: dict[str, object] = {"msgexchange.message.id": entry.message_id}
        yield from _above(one, about, self._started_at, now)
        worked = {
            **about,
            "messaging.operation.type": "process",
            "msgexchange.outcome": result.state.value,
            "msgexchange.kind": one.told.kind,
            "msgexchange.flid": list(flids[:NAMED_MAX]) or None,
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
            one.above,
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


def _above(
    one: TracedAttempt, about: Mapping[str, object], started_at: datetime, now: datetime
) -> Iterator[Told]:
    """What stands above the attempt, where nobody has told it yet."""
    if one.order_id is not None:
        ordered = {**about, "msgexchange.replay.order": one.order_id}
        links = [] if one.earlier is None else [Link(one.earlier)]
        yield Told("message.replay", one.above, None, started_at, now, ordered, links=links)
    elif not one.is_begun:
        root = sibling(one.above)
        at = one.told.entry.received_at
        received = {**about, "messaging.system": "msgexchange_mailbox"}
        received["messaging.operation.type"] = "receive"
        yield Told("mailbox.receive", root, None, at, at, received, kind=SpanKind.CONSUMER)
        yield Told("inbox.enqueue", one.above, root, at, at, about)
