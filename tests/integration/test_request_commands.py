"""Asking the AODB from the command line, on the embedded profile."""

import json
from pathlib import Path
from typing import Any

import pytest

from msgexchange.app.main import main


def run(data_dir: Path, *arguments: str) -> int:
    return main(["--data-dir", str(data_dir), *arguments])


def listed(data_dir: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[Any]:
    capsys.readouterr()
    assert run(data_dir, "requests", "--json", *more) == 0
    found: list[Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_request_is_registered_listed_and_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ("request", "plan", "--by", "jl")
    assert run(tmp_path, *plan, "--day", "2026-09-03", "--to", "2026-09-04") == 0
    assert "plan of 2026-09-03 to 2026-09-04, SEQN 000001" in capsys.readouterr().out
    assert run(tmp_path, "request", "reference", "--type", "ARPT", "--json") == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "reference:ARPT"
    [reference, first] = listed(tmp_path, capsys)
    assert first["days"] == ["2026-09-03", "2026-09-04"]
    assert (first["state"], first["requestedBy"]) == ("REGISTERED", "jl")
    assert run(tmp_path, *plan, "--day", "2026-09-05") == 0
    open_ = listed(tmp_path, capsys)
    assert [one["kind"] for one in open_] == ["plan", "reference:ARPT"]
    closed = {one["requestId"]: one for one in listed(tmp_path, capsys, "--all")}
    assert closed[first["requestId"]]["error"] == f"replaced by request {open_[0]['requestId']}"
    assert closed[reference["requestId"]]["finishedAt"] is None


def test_a_person_sees_why_a_request_was_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    assert run(tmp_path, "requests") == 0
    assert "open requests: none" in capsys.readouterr().out
    for day in ("2026-09-03", "2026-09-04"):
        assert run(tmp_path, "request", "plan", "--day", day) == 0
    assert run(tmp_path, "requests", "--all") == 0
    assert "replaced by request" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("plan", "--day", "3.9.2026"), "%Y-%m-%d"),
        (("plan", "--day", "2026-09-03", "--to", "2026-09-01"), "before the first"),
        (("plan", "--day", "2026-09-03", "--to", "2026-12-01"), "31 days"),
        (("reference", "--type", "NOPE"), "there are"),
    ],
)
def test_wrong_use_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    assert run(tmp_path, "request", *arguments) == 2
    assert told in capsys.readouterr().err
    assert listed(tmp_path, capsys, "--all") == []
