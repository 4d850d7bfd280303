"""Killed or frozen between any two effects, a publisher leaves each event once on its topic."""

import os
import signal
import time

import pytest

from msgexchange.flight.events import Target
from servers.publisher import FENCED, POINTS
from servers.publishing import CHILD_S_MAX, World

pytestmark = pytest.mark.apache_kafka

KILLS_PER_POINT = int(os.environ.get("MSGEXCHANGE_TEST_KILLS_PER_POINT", "2"))
RANDOM_KILLS = int(os.environ.get("MSGEXCHANGE_TEST_RANDOM_KILLS", "6"))
TARGETS = ("msg", "schd")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.timeout(60 + 10 * KILLS_PER_POINT)
def test_killed_between_two_effects_each_event_is_published_once(
    world: World, target: str, point: str
) -> None:
    for nth in range(1, KILLS_PER_POINT + 1):
        # A flush sends a flight once, so it takes as many flights as a few flushes hold.
        world.append(40, flights=25)
        with world.child(f"{target}:{point}", 1 + nth % 3) as child:
            assert child.wait(CHILD_S_MAX) == -signal.SIGKILL
    world.drain()
    world.assert_each_event_once()


@pytest.mark.timeout(60 + 5 * RANDOM_KILLS)
def test_killed_at_any_time_under_load_each_event_is_published_once(world: World) -> None:
    killed = 0
    for number in range(RANDOM_KILLS):
        world.append(80, flights=30)
        with world.child() as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "leads\n"
            time.sleep(0.6 * number / RANDOM_KILLS)
            child.kill()
            killed += child.wait(CHILD_S_MAX) == -signal.SIGKILL
    world.drain()
    world.assert_each_event_once()
    assert killed > RANDOM_KILLS // 3, "most were done before they were killed: more load"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("point", POINTS[:-1])
def test_a_leader_that_wakes_after_the_next_took_over_publishes_nothing(
    world: World, target: str, point: str
) -> None:
    world.append(40, flights=25)
    with world.child(f"{target}:{point}", 2, signal_=signal.SIGSTOP) as frozen:
        _wait_until_stopped(frozen.pid)
        world.drain()
        before = {target: world.ids(target) for target in (Target.MSG, Target.SCHD)}
        frozen.send_signal(signal.SIGCONT)
        assert frozen.wait(CHILD_S_MAX) == FENCED
    assert {target: world.ids(target) for target in (Target.MSG, Target.SCHD)} == before
    world.assert_each_event_once()


def _wait_until_stopped(pid: int) -> None:
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
