"""The simulated world: reproducible, clean on the product, and able to see what is wrong."""

import pytest

from msgexchange.simulation.campaign import campaign
from msgexchange.simulation.world import simulate
from simulation.planted import CAUGHT_BY, PLANTED


def test_the_same_seed_gives_the_same_trace() -> None:
    first, second = simulate(7), simulate(7)
    assert "\n".join(first.trace).encode() == "\n".join(second.trace).encode()
    assert first.faults


def test_every_promise_holds_under_faults() -> None:
    found = campaign(range(1, 26), lambda: None)
    assert found.broken is None
    assert {"SUCCEEDED", "SKIPPED", "EXHAUSTED", "MALFORMED", "event-DEAD"} <= found.reached.keys()
    assert {"died", "paused", "slow", "commit-done", "commit-undone"} <= found.faults.keys()
    assert {"refused", "outage", "acknowledgement-lost"} <= found.faults.keys()


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, invariant = CAUGHT_BY[name]
    assert simulate(seed).broken is None
    PLANTED[name](monkeypatch)
    broken = simulate(seed).broken
    assert broken is not None
    assert broken.startswith(f"{invariant}:")
