from datetime import timedelta

import pytest

from fakes.manual_clock import ManualClock
from fakes.steps import Scripted, Told, fails, pause
from msgexchange.pipeline.step import Guarded, Unhurried
from msgexchange.ports import Dependency, RetryNow, Unavailable

DOWN = Unavailable(Dependency.MAILBOX, "refused")


def test_an_outage_pauses_one_to_sixteen_seconds_and_asks_nobody_meanwhile() -> None:
    clock, step = ManualClock(), Scripted(fails(DOWN))
    guarded = Guarded(step, clock, Told())
    pauses = []
    for _ in range(6):
        pauses.append(guarded.step())
        turns = step.turns
        clock.seconds += pauses[-1] / 2
        assert guarded.step() == pauses[-1] / 2
        assert step.turns == turns
        clock.seconds += pauses[-1] / 2
    assert pauses == [1, 2, 4, 8, 16, 16]


def test_the_breaker_says_since_when_and_closes_with_the_length_of_the_pause() -> None:
    clock, told, resumed = ManualClock(), Told(), list[timedelta]()
    guarded = Guarded(Scripted(fails(DOWN), fails(DOWN), pause(7)), clock, told, resumed.append)
    guarded.step()
    clock.seconds = 1
    guarded.step()
    opened = guarded.breaker
    assert opened is not None
    assert (opened.since.second, opened.failures) == (0, 2)
    clock.seconds = 3
    assert guarded.step() == 7
    assert guarded.breaker is None
    assert resumed == [timedelta(seconds=3)]
    assert told.alerts == ["breaker-open"]


def test_a_nudge_ends_the_wait() -> None:
    clock, step = ManualClock(), Scripted(fails(DOWN), pause(5))
    guarded = Guarded(step, clock, Told())
    guarded.step()
    guarded.nudge()
    assert guarded.step() == 5


def test_a_deadlock_is_tried_again_at_once() -> None:
    guarded = Guarded(Scripted(fails(RetryNow("deadlock")), pause(5)), ManualClock(), Told())
    assert guarded.step() == 0
    assert guarded.breaker is None
    assert guarded.step() == 5


def test_a_rest_is_not_cut_short_and_a_longer_pause_is() -> None:
    clock, step = ManualClock(), Scripted(pause(0.01), pause(5))
    unhurried = Unhurried(step, clock, rest_max_s=0.01)
    assert unhurried.step() == 0.01
    clock.seconds = 0.004
    assert unhurried.step() == pytest.approx(0.006)
    assert step.turns == 1
    clock.seconds = 0.01
    assert unhurried.step() == 5
    clock.seconds = 0.02
    assert unhurried.step() == 5
    assert step.turns == 3
