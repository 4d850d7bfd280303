"""``run.py`` as people and programs use it: exit status, tables, JSON, every problem at once."""

import json
import re
from pathlib import Path

import pytest

from factories import plan, status, xml
from servers.site import ROOT, Site, running_site

pytestmark = pytest.mark.process


@pytest.fixture
def idle(tmp_path: Path) -> Site:
    """A data folder nothing runs in."""
    site = Site(tmp_path / "site", {})
    site.data_dir.mkdir()
    return site


def test_the_demo_ends_with_every_outcome_as_promised_and_every_invariant_kept(
    idle: Site,
) -> None:
    ended = idle.run("demo", "--exit", "--duration", "3", "--messages", "300")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "violations" not in ended.stdout
    assert "SUCCEEDED" in ended.stdout


def test_flights_exported_and_imported_elsewhere_are_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "flights.ndjson"
    with running_site(tmp_path / "site", {}) as site:
        for text in (plan("900123"), status("900123", "BRD")):
            code, id_ = site.send(text.encode())
            assert code == 200
            site.message(int(id_))
        assert site.run("store", "export", "--out", str(file)).returncode == 0
    [line] = file.read_bytes().splitlines()
    assert json.loads(line)["state"]["STAT"] == "BRD"
    other = Site(tmp_path / "other", {})
    other.data_dir.mkdir()
    told = other.run("store", "import", "--states", str(file), "--by", "jl")
    assert told.returncode == 0, told.stderr
    assert other.run("store", "export").stdout.encode() == file.read_bytes()
    assert json.loads(other.run("verify", "--json").stdout)["clean"]
    again = other.run("store", "import", "--states", str(file), "--by", "jl")
    assert again.returncode == 2
    assert "is known here already" in again.stderr


def test_every_command_explains_itself_with_an_example(idle: Site) -> None:
    everything = idle.run("--help").stdout
    for command in ("serve", "demo", "send", "status", "head", "flights", "flight", "explain"):
        assert command in everything
        told = idle.run(command, "--help")
        assert told.returncode == 0
        assert "run.py" in told.stdout


def test_questions_to_an_empty_store_are_answered(idle: Site) -> None:
    status_document = json.loads(idle.run("status", "--json").stdout)
    assert status_document["watermark"] == 0
    assert status_document["head"] is None
    assert json.loads(idle.run("flights", "--json").stdout) == []
    assert json.loads(idle.run("dead", "--json").stdout) == []
    assert "nobody waits" in idle.run("head").stdout
    jobs = json.loads(idle.run("jobs", "--json").stdout)
    assert [job["state"] for job in jobs] == ["never ran"] * 8
    assert "history-sweep" in idle.run("jobs").stdout
    unknown = idle.run("flight", "900123")
    assert unknown.returncode == 1
    assert "900123" in unknown.stderr
    assert json.loads(idle.run("verify", "--json").stdout)["clean"]


def test_wrong_settings_are_all_told_at_once_with_exit_2(idle: Site) -> None:
    file = idle.data_dir / "site.toml"
    file.write_text(
        'profile = "production"\n[pipeline]\npoll-intervall = "1 s"\nbatch = "many"\n', "utf-8"
    )
    refused = idle.run("--config", str(file), "config", "check")
    assert refused.returncode == 2
    for part in (
        "poll-intervall",
        "pipeline.poll-interval",
        "pipeline.batch",
        "store.url",
        "mailbox.url",
        "kafka.bootstrap",
    ):
        assert part in refused.stderr


def test_wrong_use_is_exit_2(idle: Site) -> None:
    assert idle.run("no-such-command").returncode == 2
    assert idle.run("send", "no-such-file.xml").returncode == 2


def test_a_catalogue_is_checked_and_shown(idle: Site) -> None:
    shown = idle.run("catalogue", "show", "--json")
    names = {row["name"] for row in json.loads(shown.stdout)}
    assert {"GTDT", "FLNO", "FDIV", "SRVT", "LDM"} <= names
    broken = idle.data_dir / "broken.toml"
    broken.write_text("nonsense = 1\n", "utf-8")
    checked = idle.run("catalogue", "check", str(broken))
    assert checked.returncode == 1
    assert "nonsense" in checked.stdout


def test_a_message_is_sent_explained_and_found_among_the_dead(tmp_path: Path) -> None:
    with running_site(tmp_path / "site", {}) as site:
        for name, text in (
            ("plan", plan("9001")),
            ("gate", status("9001", "BRD")),
            ("bad", xml("<FLOP><FLID>9001</FLID></FLOP>", seqn=3)),
        ):
            (site.data_dir / f"{name}.xml").write_text(text, "utf-8")
        sent = site.run("send", "--json", "plan.xml", "gate.xml", "bad.xml")
        ids = json.loads(sent.stdout)
        assert ids == {"plan.xml": 1, "gate.xml": 2, "bad.xml": 3}
        site.message(3)
        story = json.loads(site.run("explain", "2", "--json").stdout)["message"]["story"]
        assert any("SUCCEEDED; flights 9001" in line["what"] for line in story)
        history = json.loads(site.run("flight", "9001", "--json").stdout)["history"]
        assert [version["messageId"] for version in history] == [1, 2]
        assert ["STAT", None, "BRD"] in history[1]["changes"]
        [letter] = json.loads(site.run("dead", "--json").stdout)
        assert (letter["id"], letter["errorClass"], letter["textKept"]) == (3, "PROTOCOL", True)
        assert "9001" in site.run("flights").stdout


def test_a_message_a_flight_and_an_event_are_explained_and_a_flight_is_shown_as_it_was(
    tmp_path: Path,
) -> None:
    jaeger = {"MSGEXCHANGE_TELEMETRY__JAEGER_URL": "http://jaeger:16686"}
    caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    url = "http://jaeger:16686/trace/0af7651916cd43dd8448eb211c80319c"
    with running_site(tmp_path / "site", jaeger) as site:
        for text in (plan("9001"), status("9001", "BRD"), status("9001", "DEP", seqn=3)):
            id_ = int(site.send(text.encode(), traceparent=caller)[1])
            site.message(id_)
        site.wait_until(lambda: site.message(3)["events"][0]["offset"] is not None, "it is out")

        told = json.loads(site.run("explain", "2", "--as", "message", "--json").stdout)["message"]
        assert told["traceUrl"] == url
        assert told["changes"][0]["changes"] == [{"field": "STAT", "old": None, "new": "BRD"}]
        lines = [line["what"] for line in told["story"]]
        assert "flight 9001 version 2: STAT - -> BRD" in lines
        assert url in site.run("explain", "2").stdout

        flight = json.loads(site.run("explain", "9001", "--json").stdout)["flight"]
        assert [version["messageId"] for version in flight["versions"]] == [1, 2, 3]
        assert {version["traceUrl"] for version in flight["versions"]} == {url}
        assert any("is out: topic" in line["what"] for line in flight["story"])

        event_id = str(told["events"][0]["eventId"])
        event = json.loads(site.run("explain", event_id, "--as", "event", "--json").stdout)["event"]
        assert (event["messageId"], event["stateVersion"]) == (2, 2)
        assert event["change"]["changes"] == told["changes"][0]["changes"]
        assert event["offset"] is not None
        nobody = site.run("explain", "77777")
        assert nobody.returncode == 1
        assert "77777 is no message or flight or event known here" in nobody.stderr

        def stat(at: str) -> object:
            ended = site.run("flight", "9001", "--at", at, "--json")
            assert ended.returncode == 0, ended.stderr
            then = json.loads(ended.stdout)
            return then["stateVersion"], then["state"].get("STAT"), then["nextMessageId"]

        assert [stat(at) for at in "123"] == [(1, None, 2), (2, "BRD", 3), (3, "DEP", None)]
        second, third = (version["at"] for version in flight["versions"][1:])
        assert stat(second) == (2, "BRD", 3)
        assert stat(third) == (3, "DEP", None)
        assert "version 2, ACTIVE" in site.run("flight", "9001", "--at", "2").stdout
        early = site.run("flight", "9001", "--at", "2013-11-27T00:00")
        assert (early.returncode, "no flight 9001 then" in early.stderr) == (1, True)
        assert site.run("flight", "9001", "--at", "4").returncode == 1
        assert site.run("flight", "9001", "--at", "yesterday").returncode == 2


def test_metrics_of_a_working_process_are_those_alerts_and_dashboard_ask_for(
    tmp_path: Path,
) -> None:
    with running_site(tmp_path / "site", {}) as site:
        site.send(plan("9001").encode())
        site.message(1)
        site.wait_until(lambda: site.metric("msgexchange_leading") == 1, "it leads")
        page = site.text("/metrics")
        told = {line.split()[2] for line in page.splitlines() if line.startswith("# HELP")}
        asked = set(re.findall(r"`(msgexchange_\w+)`", (ROOT / "docs/metrics.md").read_text()))
        assert len(asked) > 30
        assert {name for name in told if name.startswith("msgexchange_")} == asked
        assert {"process_start_time_seconds", "process_resident_memory_bytes"} <= told


def test_after_a_restart_what_the_embedded_broker_forgot_is_named_not_called_broken(
    tmp_path: Path,
) -> None:
    with running_site(tmp_path / "site", {}) as site:
        site.send(plan("9001").encode())
        site.wait_until(lambda: _is_clean(site), "everything is through")
        assert site.stop() == 0
        site.start()
        again = json.loads(site.run("verify", "--kafka", "--json").stdout)
        assert again["clean"]
        assert any("oldest records" in reason for reason in again["leftOut"])


def _is_clean(site: Site) -> bool:
    found = json.loads(site.run("verify", "--kafka", "--json").stdout)
    return found["clean"] and len(found["leftOut"]) == 1


def test_gaps_of_a_store_are_told_and_nothing_is_accepted_that_is_not_halted(idle: Site) -> None:
    document = json.loads(idle.run("gaps", "--all", "--json").stdout)
    assert (document["gaps"], document["openGaps"], document["halted"]) == ([], 0, None)
    assert "watermark" in idle.run("gaps").stdout
    refused = idle.run("gaps", "accept-restart", "--reason", "restored")
    assert refused.returncode == 2
    assert "not halted" in refused.stderr


@pytest.mark.postgres
@pytest.mark.mysql
@pytest.mark.kafka
def test_the_bench_measures_beside_floors_and_checks_what_it_measured(idle: Site) -> None:
    ended = idle.run("bench", "--tiny", "--json", timeout_s=280)
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(ended.stdout)["figures"]
    assert figures
    for figure in figures:
        assert {"figure", "value", "unit", "floor", "ratio", "must", "aim", "must_met"} <= set(
            figure
        )
