"""Killed or frozen between any two effects, a publisher leaves each event once on its topic."""

import os
import random
import signal
import time

import pytest

from msgexchange.clock import SystemClock
from msgexchange.flight.events import Target
from msgexchange.ids import Fence
from servers.publisher import FENCED, POINTS, STAYS
from servers.publishing import CHILD_S_MAX, World, wait_until_stopped

pytestmark = pytest.mark.apache_kafka

KILLS_PER_POINT = int(os.environ.get("MSGEXCHANGE_TEST_KILLS_PER_POINT", "2"))
RANDOM_KILLS = int(os.environ.get("MSGEXCHANGE_TEST_RANDOM_KILLS", "6"))
SEED = int(os.environ.get("MSGEXCHANGE_TEST_SEED", "1"))
LIFE_S_MAX = 0.8
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
    chance = random.Random(SEED)
    clock = SystemClock()
    for _ in range(RANDOM_KILLS):
        world.append(20, flights=30)
        with world.child(STAYS) as child:
            assert child.stdout is not None
            fence = Fence(int(child.stdout.readline()))
            until_s = clock.monotonic() + chance.uniform(0, LIFE_S_MAX)
            while clock.monotonic() < until_s:
                world.append(5, flights=30, fence=fence)
                time.sleep(0.02)
            child.kill()
            assert child.wait(CHILD_S_MAX) == -signal.SIGKILL
    world.drain()
    world.assert_each_event_once()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("point", POINTS[:-1])
def test_a_leader_that_wakes_after_the_next_took_over_publishes_nothing(
    world: World, target: str, point: str
) -> None:
    world.append(40, flights=25)
    with world.child(f"{target}:{point}", 2, signal_=signal.SIGSTOP) as frozen:
        wait_until_stopped(frozen.pid)
        world.drain()
        before = {target: world.ids(target) for target in (Target.MSG, Target.SCHD)}
        frozen.send_signal(signal.SIGCONT)
        assert frozen.wait(CHILD_S_MAX) == FENCED
    assert {target: world.ids(target) for target in (Target.MSG, Target.SCHD)} == before
    world.assert_each_event_once()
