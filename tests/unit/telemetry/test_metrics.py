"""Metrics: what the page of metrics says, and what ``/metrics`` then serves."""

import re
from datetime import timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from factories import plan
from fakes.line import POISON, Line, ManualClock
from msgexchange.ids import Fence
from msgexchange.lifecycle.breaker import Breaker
from msgexchange.store.sql_store import SqlStore
from msgexchange.telemetry.gauges import ProcessGauges, StoreGauges
from msgexchange.telemetry.instruments import COUNTERS, GAUGES, HISTOGRAMS, Instruments
from msgexchange.telemetry.metrics_table import metrics_page
from msgexchange.telemetry.metrics_table import names as documented

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
LABELS = {"state", "error_class", "name", "target", "actor", "dependency", "sender", "element"} | {
    "kind",
    "matched",
}


def served(store: SqlStore, clock: ManualClock) -> str:
    """``/metrics`` of a process that leads this store, its counters untouched."""
    registry = CollectorRegistry()
    Instruments(registry)
    breaker = Breaker("mailbox", clock.now() - timedelta(seconds=7), 3, "refused")
    registry.register(StoreGauges(store.reads.counts, lambda: 40, clock))
    registry.register(
        ProcessGauges(
            fence=lambda: Fence(3),
            lease=store.reads.leadership,
            breakers=lambda: {"pump": breaker},
            clock=clock,
        )
    )
    return generate_latest(registry).decode()


def test_the_page_of_metrics_is_what_the_code_says() -> None:
    renew = "renew it: python -m msgexchange.telemetry.metrics_table > docs/metrics.md"
    assert PAGE.read_text("utf-8") == metrics_page(), renew


def test_metrics_serves_what_is_documented_and_no_more(memory_store: SqlStore) -> None:
    families = text_string_to_metric_families(served(memory_store, ManualClock()))
    found = {family.name: family for family in families}
    wanted = {f"msgexchange_{name}" for name in (*GAUGES, *COUNTERS, *HISTOGRAMS)}
    assert set(found) == wanted
    for name, gauge in GAUGES.items():
        family = found[f"msgexchange_{name}"]
        assert (family.type, family.documentation) == ("gauge", gauge.text)
        assert all(set(sample.labels) == set(gauge.labels) for sample in family.samples)
    sampled = {sample.name for family in found.values() for sample in family.samples}
    assert sampled <= documented()


def test_names_follow_prometheus_and_labels_stay_few() -> None:
    every = {**GAUGES, **COUNTERS}
    for name in (*every, *HISTOGRAMS):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", name)
        assert not name.endswith(("_total", "_count", "_sum", "_bucket", "_ms", "_millis"))
    for name in HISTOGRAMS:
        assert name.endswith("_seconds")
    for name, one in every.items():
        assert set(one.labels) <= LABELS, f"{name}: never a flight, a message or an event"
        assert ("age" in name.split("_") or "lag" in name) <= name.endswith("_seconds"), name


def test_ages_and_senders_are_those_of_the_store(memory_store: SqlStore) -> None:
    line = Line(memory_store)
    line.receive([plan("9001"), "<MSG>", POISON])
    line.run()
    received = line.clock.now()
    line.clock.seconds += 90
    told = served(memory_store, line.clock)
    assert 'msgexchange_dead_letters{error_class="MALFORMED"} 1.0' in told
    assert 'msgexchange_inbox_messages{state="FAILED"} 1.0' in told
    assert "msgexchange_head_age_seconds 90.0" in told
    assert "msgexchange_outbox_lag_seconds 90.0" in told
    assert "msgexchange_mailbox_backlog_ids 37.0" in told
    assert 'msgexchange_breaker_open_seconds{actor="pump",dependency="mailbox"} 7.0' in told
    heard = re.search(r'_last_message_timestamp_seconds{sender="AODB"} (\S+)', told)
    assert heard is not None
    assert float(heard[1]) == received.timestamp()
