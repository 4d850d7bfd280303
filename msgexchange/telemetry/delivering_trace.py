"""What a window or a flush tells, once for itself and once per traced message."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from opentelemetry.trace import Link, SpanContext, SpanKind

from msgexchange.clock import Clock
from msgexchange.flight.events import Target
from msgexchange.ports.delivery import OutboxEntry
from msgexchange.telemetry.spans import (
    LINKS_MAX,
    NAMED_MAX,
    Told,
    context_of,
    header_of,
    new_context,
)


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
                "msgexchange.event.id": [entry.event_id for entry in entries[:NAMED_MAX]],
                "msgexchange.flid": [e.flid for e in entries[:NAMED_MAX] if e.flid] or None,
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
