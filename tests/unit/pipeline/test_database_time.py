"""The database's clock is followed; its jumps are told and made good."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from factories import T0
from fakes.election import MemoryLease
from fakes.manual_clock import ManualClock
from fakes.steps import Told
from msgexchange.clock import AnchoredClock
from msgexchange.ids import Fence
from msgexchange.pipeline.database_time import FOLLOW_EVERY_S, DatabaseTime

FENCE = Fence(1)
QUARTER = timedelta(minutes=15)


@dataclass
class DatabaseClock(MemoryLease):
    """A store whose clock runs with ours, and jumps."""

    ahead: timedelta = timedelta()

    def database_now(self) -> datetime:
        self._call()
        return T0 + timedelta(seconds=self.clock.seconds) + self.ahead


class World:
    def __init__(self, fence: Fence | None = FENCE) -> None:
        self.time = ManualClock(100)
        self.store = DatabaseClock(self.time)
        self.clock = AnchoredClock(self.store.database_now(), self.time.monotonic)
        self.told = Told()
        self.rung = 0
        self.step = DatabaseTime(
            store=self.store,
            clock=self.clock,
            telemetry=self.told,
            fence=lambda: fence,
            shifted=self._ring,
        )

    def _ring(self) -> None:
        self.rung += 1

    def follow(self) -> None:
        self.time.seconds += FOLLOW_EVERY_S
        self.step.step()

    @property
    def error(self) -> timedelta:
        return self.clock.now() - (T0 + timedelta(seconds=self.time.seconds) + self.store.ahead)


def test_a_clock_that_drifts_is_followed_and_never_runs_backwards() -> None:
    world = World()
    seen = [world.clock.now()]
    for ahead_s in (0.4, -0.7, 1.1, -0.3):
        world.store.ahead = timedelta(seconds=ahead_s)
        world.follow()
        seen.append(world.clock.now())
    world.time.seconds += 2
    assert world.error == timedelta()
    assert seen == sorted(seen)
    assert world.told.alerts == []
    assert world.store.shifts == []


@pytest.mark.parametrize("jump", [QUARTER, -QUARTER])
def test_a_jump_of_the_databases_clock_is_told_and_shifts_open_deadlines(jump: timedelta) -> None:
    world = World()
    world.store.ahead = jump
    world.follow()
    assert world.told.alerts == ["database-clock-jump"]
    assert world.store.shifts == [jump]
    assert world.rung == 1
    assert world.error == timedelta()
    world.follow()
    assert world.store.shifts == [jump]


@pytest.mark.parametrize("jump", [QUARTER, -QUARTER])
def test_deadlines_that_could_not_be_shifted_are_shifted_once_later(
    jump: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.store.ahead = jump
    works = world.store.shift_deadlines
    tries = 0

    def fails_first(fence: Fence, by: timedelta) -> int:
        nonlocal tries
        tries += 1
        world.store.down = tries == 1
        try:
            return works(fence, by)
        finally:
            world.store.down = False

    monkeypatch.setattr(world.store, "shift_deadlines", fails_first)
    for _ in range(4):
        world.follow()
    assert world.store.shifts == [jump]
    assert world.error == timedelta()


def test_a_standby_follows_a_jump_and_leaves_the_deadlines_to_the_leader() -> None:
    world = World(fence=None)
    world.store.ahead = QUARTER
    world.follow()
    assert world.error == timedelta()
    assert world.store.shifts == []


def test_a_reading_that_took_long_is_not_believed() -> None:
    world = World()
    world.store.ahead = QUARTER

    def slow() -> None:
        world.time.seconds += 1

    world.store.on_call = slow
    world.follow()
    assert world.told.alerts == []
    assert world.error == -QUARTER
