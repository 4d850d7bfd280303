"""What people do about delivery from the command line, on the embedded profile."""

import json
from pathlib import Path

import pytest
from sqlalchemy import text

from msgexchange.app.main import main
from msgexchange.clock import SystemClock
from msgexchange.flight.events import Target
from msgexchange.ids import EventId
from msgexchange.ports import Batch, EventFailure
from msgexchange.store.engine import open_engine
from servers.publisher import open_store, take_lead
from servers.publishing import event


def run(data_dir: Path, *arguments: str) -> int:
    return main(["--data-dir", str(data_dir), *arguments])


def rows(data_dir: Path, query: str) -> list[tuple[object, ...]]:
    engine = open_engine(f"sqlite:///{data_dir / 'store.sqlite'}")
    with engine.begin() as connection:
        found = [tuple(row) for row in connection.execute(text(query))]
    engine.dispose()
    return found


def test_a_new_generation_is_one_more_and_above_what_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "store", "new-generation", "--by", "jl", "--reason", "restored") == 0
    assert "generation 2" in capsys.readouterr().out
    assert run(tmp_path, "store", "new-generation", "--by", "jl", "--above", "7") == 0
    assert "generation 8" in capsys.readouterr().out
    acts = rows(tmp_path, "SELECT actor, act, reason FROM operation_audit ORDER BY at")
    assert acts == [
        ("jl", "store-new-generation", "restored"),
        ("jl", "store-new-generation", None),
    ]


def test_a_copied_store_gets_an_id_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "dead", "--events") == 0
    [(before,)] = rows(tmp_path, "SELECT store_id FROM store_info")
    assert run(tmp_path, "store", "new-id", "--by", "jl") == 0
    [(after,)] = rows(tmp_path, "SELECT store_id FROM store_info")
    assert after != before
    assert str(after) in capsys.readouterr().out


def test_whoever_acts_must_be_named(tmp_path: Path) -> None:
    assert run(tmp_path, "store", "new-id") == 2
    assert run(tmp_path, "redeliver", "1", "--by", "jl") == 2


def test_a_dead_event_is_listed_and_goes_out_again_as_a_new_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "dead", "--events") == 0
    plant_a_dead_event(tmp_path)
    capsys.readouterr()
    assert run(tmp_path, "dead", "--events", "--json") == 0
    [dead] = json.loads(capsys.readouterr().out)
    assert (dead["eventId"], dead["flid"], dead["error"]) == (1, "F1", "too large")
    given = ("redeliver", "1", "--by", "jl", "--reason", "limit raised")
    assert run(tmp_path, *given) == 0
    assert "event 1 goes out again as event 2" in capsys.readouterr().out
    assert rows(
        tmp_path, "SELECT event_id, state, redelivered_as FROM msg_event_state ORDER BY event_id"
    ) == [(1, "DEAD", 2), (2, "PENDING", None)]
    assert rows(tmp_path, "SELECT actor, act, subject, reason, outcome FROM operation_audit") == [
        ("jl", "redeliver", "event 1", "limit raised", "redelivered-as 2")
    ]
    assert run(tmp_path, "dead", "--events", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
    assert run(tmp_path, *given) == 1
    assert "event 1 was redelivered as 2" in capsys.readouterr().err


def plant_a_dead_event(data_dir: Path) -> None:
    store = open_store(str(data_dir / "store.sqlite"))
    fence = take_lead(store)
    now = SystemClock().now()
    with store.pump.transaction(fence) as transaction:
        told = event(Target.MSG, 1, flights=5)
        transaction.commit_batch(Batch(messages=(), events=[told]), now=now, codec_version="1")
    store.outbox.charge(fence, EventFailure(EventId(1), 5, None, "too large"), now=now)
    store.close()


def test_a_living_event_is_not_redelivered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "redeliver", "1", "--by", "jl", "--reason", "drill") == 1
    assert "event 1 is not dead" in capsys.readouterr().err
    assert run(tmp_path, "dead", "--events", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [("PARTITIONER", "kafka.client.partitioner"), ("NO_SUCH", "kafka.client.no.such")],
)
def test_a_client_setting_that_cannot_stand_ends_the_start_by_its_name(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    told: str,
) -> None:
    monkeypatch.setenv(f"MSGEXCHANGE_KAFKA__CLIENT__{name}", "random")
    assert run(tmp_path, "serve") == 2
    assert told in capsys.readouterr().err
