"""An OTLP/HTTP receiver inside the test: what arrives is decoded as a collector would."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class Span:
    """A span as it was exported."""

    name: str
    trace: str
    id: str
    parent: str
    links: tuple[str, ...]
    """Ids of the spans linked to."""
    attributes: dict[str, Any]
    failed: bool
    errors: tuple[str, ...]
    """``exception.type`` of each recorded error."""
    instance: str = ""
    """``service.instance.id``: the process that told it."""


@dataclass
class Collector:
    """Keeps every span it is sent."""

    spans: list[Span] = field(default_factory=list)
    port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/traces"

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def of_message(self, message_id: int) -> list[Span]:
        return [s for s in self.spans if s.attributes.get("msgexchange.message.id") == message_id]

    def tree(self, trace: str) -> dict[str, str]:
        """Name of each span in a trace -> its parent's name; ``?`` for one nobody exported."""
        own = [span for span in self.spans if span.trace == trace]
        names = {span.id: span.name for span in own}
        return {span.name: names.get(span.parent, "?") if span.parent else "" for span in own}

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            about = {pair.key: _value(pair.value) for pair in resource.resource.attributes}
            instance = str(about.get("service.instance.id"))
            for scope in resource.scope_spans:
                self.spans += [_span(one, instance) for one in scope.spans]


def _span(one: Any, instance: str) -> Span:
    return Span(
        name=one.name,
        trace=one.trace_id.hex(),
        id=one.span_id.hex(),
        parent=one.parent_span_id.hex(),
        links=tuple(link.span_id.hex() for link in one.links),
        attributes={pair.key: _value(pair.value) for pair in one.attributes},
        failed=one.status.code == 2,
        errors=tuple(
            pair.value.string_value
            for event in one.events
            for pair in event.attributes
            if pair.key == "exception.type"
        ),
        instance=instance,
    )


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def running_collector() -> Iterator[Collector]:
    """Listens on a free port of this host."""
    collector = Collector()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.take(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    collector.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
