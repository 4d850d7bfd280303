"""A file of states is read whole or refused with every bad line."""

import pytest

from msgexchange.codec.encode import encode
from msgexchange.codec.limits import Limits
from msgexchange.pipeline.import_states import PROBLEMS_TOLD_MAX, ImportRefused, read_states

LIMITS = Limits()


def line(flid: str = "900123", **changed: object) -> bytes:
    document = {
        "flid": flid,
        "lastMessageId": 17,
        "operationDay": "2026-09-03",
        "state": {"FLNO": "CZ3101", "GTDT": [{"GATE": "A12"}]},
        "stateVersion": 3,
        "status": "ACTIVE",
        "timezone": "Asia/Shanghai",
    }
    return encode(document | changed) + b"\n"


def test_a_good_file_gives_its_states_in_order() -> None:
    states = read_states([line("2"), b"\n", line("1", operationDay=None)], LIMITS)
    assert [state.flid for state in states] == ["2", "1"]
    assert states[0].content == {"FLNO": "CZ3101", "GTDT": ({"GATE": "A12"},)}


def test_every_bad_line_is_named_with_what_is_wrong() -> None:
    lines = [
        line("1"),
        b"{not json\n",
        line("A/B"),
        line("2", stateVersion=0),
        line("3", state={"RMRK": "x" * 4_001}),
        line("4", state={"RMRK": "a\0b"}),
        line("5", status="GONE"),
        line("1"),
    ]
    with pytest.raises(ImportRefused) as refusal:
        read_states(lines, LIMITS)
    numbered = [problem.split(":")[0] for problem in refusal.value.problems]
    assert numbered == [f"line {number}" for number in range(2, 9)]
    assert "line 8: flight 1 stands in line 1 already" in str(refusal.value)


def test_a_long_list_of_problems_is_cut_and_says_so() -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_states([b"[]\n"] * 50, LIMITS)
    assert len(refusal.value.problems) == 50
    assert str(refusal.value).endswith(f"and {50 - PROBLEMS_TOLD_MAX} more")


def test_octets_that_are_no_text_are_a_bad_line() -> None:
    with pytest.raises(ImportRefused, match="line 1"):
        read_states([b"\xff\xfe\n"], LIMITS)
