"""Finished spans, their contexts, and the exporter they go to."""

import hashlib
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from msgexchange import __version__

STOP_WAITS_S = 2.0
NAMED_MAX = 10
"""Flights and events that a span names; more are counted."""
LINKS_MAX = 128
_HEADER = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Told:
    """A span that is over; ``error`` is its class and text."""

    name: str
    context: SpanContext
    parent: SpanContext | None
    began_at: datetime
    ended_at: datetime
    attributes: Mapping[str, object] = field(default_factory=dict)
    kind: SpanKind = SpanKind.INTERNAL
    links: Sequence[Link] = ()
    error: tuple[str, str] | None = None


def context_of(header: str | None) -> SpanContext | None:
    """Of a ``traceparent``; None where it is none."""
    found = _HEADER.fullmatch(header or "")
    if found is None:
        return None
    trace, span, flags = found.groups()
    context = SpanContext(
        int(trace, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16) & 1)
    )
    return context if context.is_valid else None


def header_of(context: SpanContext) -> str:
    """The ``traceparent`` that names this span."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def new_context(parent: SpanContext | None, *, sampled: bool = True) -> SpanContext:
    """A span to be told later, in its parent's trace or a new one."""
    trace = parent.trace_id if parent else int.from_bytes(os.urandom(16)) or 1
    span = int.from_bytes(os.urandom(8)) or 1
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(int(sampled)))


def sibling(context: SpanContext) -> SpanContext:
    """The entry span above an enqueue span: whoever tells it, in whatever process, agrees."""
    digest = hashlib.blake2b(context.span_id.to_bytes(8), digest_size=8).digest()
    return SpanContext(
        context.trace_id,
        int.from_bytes(digest) or 1,
        is_remote=False,
        trace_flags=context.trace_flags,
    )


class SpanExport:
    """Hands spans to a bounded queue that a thread of its own sends; full, it drops.

    Endpoint, headers, timeout, batches and resource follow the standard ``OTEL_*`` variables;
    ``endpoint`` comes first.
    """

    def __init__(self, *, endpoint: str | None, instance: str) -> None:
        self._resource = Resource.create(
            {
                "service.name": os.environ.get("OTEL_SERVICE_NAME", "msgexchange"),
                "service.version": __version__,
                "service.instance.id": instance,
            }
        )
        self._scope = InstrumentationScope("msgexchange", __version__)
        self._exporter = OTLPSpanExporter(endpoint=endpoint)
        self._batches = BatchSpanProcessor(self._exporter)

    def tell(self, told: Told) -> None:
        self._batches.on_end(
            ReadableSpan(
                told.name,
                context=told.context,
                parent=told.parent,
                resource=self._resource,
                attributes={k: v for k, v in told.attributes.items() if v is not None},  # type: ignore[misc]
                events=_failure(told),
                links=told.links,
                kind=told.kind,
                status=Status(StatusCode.ERROR, told.error[1]) if told.error else Status(),
                start_time=_ns(told.began_at),
                end_time=_ns(max(told.began_at, told.ended_at)),
                instrumentation_scope=self._scope,
            )
        )

    def close(self) -> None:
        """Send what is queued, for ``STOP_WAITS_S`` at most; what is left then is dropped.

        A call that hangs ends with its own timeout, on a daemon thread, and none follows it.
        """
        if not _within(self._batches.shutdown, STOP_WAITS_S):
            self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _failure(told: Told) -> Sequence[Event]:
    if told.error is None:
        return ()
    kind, text = told.error
    about = {"exception.type": kind, "exception.message": text}
    return [Event("exception", about, timestamp=_ns(told.ended_at))]


def _ns(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000


def _within(call: Callable[[], None], seconds: float) -> bool:
    """True if the call was over in that time; else it goes on by itself."""
    thread = threading.Thread(target=call, name="trace-export-stop", daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()
