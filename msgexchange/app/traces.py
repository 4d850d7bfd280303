"""Where traces go, by ``telemetry.*`` and the standard ``OTEL_*`` variables (spec 6.3)."""

from collections.abc import Mapping

from msgexchange.clock import Clock
from msgexchange.config import Settings
from msgexchange.ports.tracing import UNTRACED, Tracing
from msgexchange.telemetry.spans import SpanExport
from msgexchange.telemetry.tracing import Tracer, TraceRules

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def open_export(
    settings: Settings, environ: Mapping[str, str], *, instance: str
) -> SpanExport | None:
    """None where no endpoint is named, or ``OTEL_*`` turns traces off."""
    telemetry = settings.telemetry
    off = (
        environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
        or environ.get("OTEL_TRACES_EXPORTER", "otlp") == "none"
    )
    named = telemetry.otlp_endpoint or any(environ.get(name) for name in ENDPOINTS)
    if off or not named:
        return None
    endpoint = telemetry.otlp_endpoint
    if endpoint is not None and not endpoint.rstrip("/").endswith("/v1/traces"):
        endpoint = endpoint.rstrip("/") + "/v1/traces"
    return SpanExport(endpoint=endpoint, instance=instance)


def tracing(settings: Settings, export: SpanExport | None, clock: Clock) -> Tracing:
    """What steps are given."""
    if export is None:
        return UNTRACED
    rules = TraceRules(
        per_second=settings.telemetry.traces_per_second, slow_after=settings.telemetry.slow_after
    )
    return Tracer(export.tell, rules, clock)
