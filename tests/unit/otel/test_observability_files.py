"""``otel/``: what a person brings up to look, checked against what is really served."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_schema import Compose
from prometheus_client import CollectorRegistry
from pydantic import ValidationError

from fakes.manual_clock import ManualClock
from msgexchange.telemetry.instruments import Instruments
from msgexchange.telemetry.journal import Journal
from msgexchange.telemetry.metrics_table import names

ROOT = Path(__file__).resolve().parents[3]
OTEL = ROOT / "otel"
PROMTOOL = Path(sys.prefix) / "bin" / "promtool"
OF_CLIENT = {
    "process_start_time_seconds",
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
}
WATCHED = {
    "head age": "msgexchange_head_age_seconds",
    "backlog": "msgexchange_mailbox_backlog_ids",
    "gap age": "msgexchange_oldest_gap_age_seconds",
    "dead by class": "msgexchange_dead_letters",
    "outbox lag": "msgexchange_outbox_lag_seconds",
    "overdue marks": "msgexchange_oldest_unmarked_age_seconds",
    "breaker open": "msgexchange_breaker_open_seconds",
    "silence per sender": "msgexchange_sender_last_message_timestamp_seconds",
    "standby missing": "msgexchange_standbys",
    "restarts": "msgexchange_actor_restarts_total",
}
"""Spec 6.3, and the metric that tells of each."""


def loaded(name: str) -> Any:
    return yaml.safe_load((OTEL / name).read_text("utf-8"))


def dashboard() -> Any:
    return json.loads((OTEL / "grafana" / "msgexchange.json").read_text("utf-8"))


def rules() -> list[Any]:
    return [r for group in loaded("prometheus/rules.yaml")["groups"] for r in group["rules"]]


def queries(panels: list[Any]) -> Iterator[str]:
    for panel in panels:
        yield from (target["expr"] for target in panel.get("targets", ()))


def metrics_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:msgexchange|process)_\w+", expression))


def promtool(*arguments: str) -> str:
    """What Prometheus's own checker says; ``make promtool`` puts it there."""
    assert PROMTOOL.exists(), f"no {PROMTOOL}: make {PROMTOOL.relative_to(ROOT)}"
    ended = subprocess.run(
        [PROMTOOL, *arguments], cwd=OTEL, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_prometheus_accepts_scrape_configuration_and_rules() -> None:
    told = promtool("check", "config", "prometheus/prometheus.yaml")
    assert f"{len(rules())} rules found" in told


def test_each_alert_fires_when_it_must_and_not_before() -> None:
    promtool("test", "rules", "prometheus/rules_test.yaml")
    tested = (OTEL / "prometheus" / "rules_test.yaml").read_text("utf-8")
    assert [r["alert"] for r in rules() if f'alertname="{r["alert"]}"' not in tested] == []


@pytest.mark.parametrize("line", WATCHED)
def test_there_is_an_alert_for_each_thing_that_is_to_be_watched(line: str) -> None:
    assert any(WATCHED[line] in metrics_in(rule["expr"]) for rule in rules())


def test_an_alert_says_how_bad_what_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
        assert set(rule["annotations"]) == {"summary", "action"}, rule["alert"]


def test_rules_and_dashboard_ask_only_for_metrics_there_are() -> None:
    asked = {name for rule in rules() for name in metrics_in(rule["expr"])}
    shown = {name for query in queries(dashboard()["panels"]) for name in metrics_in(query)}
    assert len(asked) > 10
    assert len(shown) > 20
    assert (asked | shown) - names() == OF_CLIENT


def test_what_a_rule_watches_for_an_increase_is_served_before_it_first_counts() -> None:
    """Else a rule would miss the first: a series that begins with 1 has not increased."""
    registry = CollectorRegistry()
    Journal(Instruments(registry), ManualClock()).count("actor_restarts", 0, actor="pump")
    served = [sample for family in registry.collect() for sample in family.samples]
    expressions = " ".join(rule["expr"] for rule in rules())
    asked = re.findall(r"increase\((\w+)(?:{(\w+)=~?\"(.+?)\"})?\[", expressions)
    assert len(asked) == expressions.count("increase(") > 4
    for name, label, value in asked:
        assert any(
            sample.name == name and (not label or re.fullmatch(value, sample.labels[label]))
            for sample in served
        ), name


def test_every_metric_is_on_the_dashboard_or_in_a_rule() -> None:
    """What nobody looks at need not be measured."""
    asked = {name for rule in rules() for name in metrics_in(rule["expr"])}
    shown = {name for query in queries(dashboard()["panels"]) for name in metrics_in(query)}
    parts = ("_sum", "_count")
    unseen = {n for n in names() - asked - shown if not n.endswith(parts)}
    assert unseen == {
        "msgexchange_watermark",
        "msgexchange_flights",
        "msgexchange_unmarked_messages",
        "msgexchange_gaps_permanent_total",
    }


def test_the_dashboard_uses_the_data_source_that_is_provisioned() -> None:
    sources = {one["uid"]: one["type"] for one in loaded("grafana/datasources.yaml")["datasources"]}
    text = json.dumps(dashboard())
    used = {(kind, uid) for kind, uid in re.findall(r'{"type": "(\w+)", "uid": "(\w+)"}', text)}
    assert used == {("prometheus", "prometheus")}
    assert used <= {(kind, uid) for uid, kind in sources.items()}


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_compose_file_keeps_to_the_specification_and_its_files_exist() -> None:
    compose = Compose.model_validate(loaded("compose.yaml"))
    assert set(compose.services) == {"collector", "jaeger", "prometheus", "grafana"}
    named: set[str] = set()
    for service in compose.services.values():
        assert set(service.depends_on) <= set(compose.services)
        for volume in service.volumes:
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (OTEL / source).exists(), source
            else:
                named.add(source)
    assert named == set(compose.volumes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"imagee": "a/b:1.0.0"},
        {"image": "a/b:latest"},
        {"volumes": ["prometheus.yaml"]},
        {"environment": {"PORT": 3000}},
    ],
)
def test_the_check_of_the_compose_file_sees_what_is_wrong(wrong: dict[str, Any]) -> None:
    file = loaded("compose.yaml")
    file["services"]["grafana"].update(wrong)
    with pytest.raises(ValidationError):
        Compose.model_validate(file)


@pytest.mark.parametrize("name", ["collector/config.yaml", "jaeger/config.yaml"])
def test_pipelines_of_collector_and_jaeger_are_made_of_what_is_declared(name: str) -> None:
    config = loaded(name)
    service = config["service"]
    assert set(service.get("extensions", ())) == set(config.get("extensions") or {})
    for kind in ("receivers", "processors", "exporters"):
        used = {one for pipeline in service["pipelines"].values() for one in pipeline[kind]}
        assert used == set(config[kind]), kind


def test_every_port_is_on_this_machine_alone_and_each_meets_its_partner() -> None:
    collector, jaeger = loaded("collector/config.yaml"), loaded("jaeger/config.yaml")
    sends_to = collector["exporters"]["otlp/jaeger"]["endpoint"]
    assert sends_to == jaeger["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"]
    texts = [(OTEL / n).read_text("utf-8") for n in ("collector/config.yaml", "jaeger/config.yaml")]
    endpoints = [one for text in texts for one in re.findall(r"endpoint: (\S+)", text)]
    assert len(endpoints) >= 5
    assert all(one.startswith("127.0.0.1:") for one in endpoints)
    listening = [one for one in endpoints if one != sends_to]
    assert len(set(listening)) == len(listening)
    urls = {one["uid"]: one["url"] for one in loaded("grafana/datasources.yaml")["datasources"]}
    assert urls["jaeger"].removeprefix("http://") in endpoints
    command = loaded("compose.yaml")["services"]["prometheus"]["command"]
    assert f"--web.listen-address={urls['prometheus'].removeprefix('http://')}" in command
