"""The page of metrics, written from the instruments themselves.

``python -m msgexchange.telemetry.metrics_table > docs/metrics.md`` renews it.
"""

import sys
from collections.abc import Iterator

from msgexchange.telemetry.instruments import COUNTERS, GAUGES, HISTOGRAMS

HEAD = """# Metrics

`GET /metrics`, Prometheus text. Names begin with `msgexchange_`; times are in seconds, counters
end in `_total` and begin anew with the process. Gauges of the own store are read at each scrape
and are the same from every process: take their `max`; they are absent while the store is down.
No label ever holds a flight, a message or an event. `element` and `sender` come from messages:
100 values at most. Beside these there are the usual `process_*` of the client library. Alert
rules and a dashboard on them: [otel](../otel/README.md). This page is generated.
"""


def metrics_page() -> str:
    """``docs/metrics.md``."""
    return "\n".join((HEAD, *_lines())) + "\n"


def names() -> frozenset[str]:
    """Every sample name there can be on ``/metrics``, those of the client library left out."""
    return frozenset(
        f"msgexchange_{name}"
        for name in (
            *GAUGES,
            *(f"{name}_total" for name in COUNTERS),
            *(f"{name}_{part}" for name in HISTOGRAMS for part in ("bucket", "sum", "count")),
        )
    )


def _lines() -> Iterator[str]:
    yield "| name | kind | labels | says |"
    yield "| --- | --- | --- | --- |"
    for name, gauge in sorted(GAUGES.items()):
        yield _line(name, "gauge", gauge.labels, gauge.text)
    for name, counter in sorted(COUNTERS.items()):
        yield _line(f"{name}_total", "counter", counter.labels, counter.text)
    for name, text in sorted(HISTOGRAMS.items()):
        yield _line(name, "histogram", (), text)


def _line(name: str, kind: str, labels: tuple[str, ...], text: str) -> str:
    told = ", ".join(f"`{label}`" for label in labels)
    return f"| `msgexchange_{name}` | {kind} | {told} | {text} |"


if __name__ == "__main__":
    sys.stdout.write(metrics_page())
