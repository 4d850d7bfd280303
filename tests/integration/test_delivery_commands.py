"""What people do about delivery from the command line, on the embedded profile."""

import json
from pathlib import Path

import pytest
from sqlalchemy import text

from msgexchange.app.main import main
from msgexchange.store.engine import open_engine


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


def test_a_living_event_is_not_redelivered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "redeliver", "1", "--by", "jl", "--reason", "drill") == 1
    assert "event 1 is not dead" in capsys.readouterr().err
    assert run(tmp_path, "dead", "--events", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
