"""Real Pykka threads: failed steps restart with back-off, one at a time, until it is enough."""

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pykka
import pytest

from fakes.steps import OpenedScript, Scripted, Told, fails, pause
from msgexchange.actors.alarm import Alarm
from msgexchange.actors.pulse import Pulse
from msgexchange.actors.supervisor import Member, Role, SupervisorActor
from msgexchange.actors.turn import InboxActor, Post, PumpActor
from msgexchange.clock import SystemClock
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.supervision import RestartPolicy
from msgexchange.ports import Fenced

CLOCK = SystemClock()
LOST_S = 0.05
AT_ONCE = RestartPolicy(
    restarts_max=3, backoff=Backoff(timedelta(milliseconds=1), timedelta(milliseconds=5))
)


class House:
    """A supervisor over members that tests look into."""

    def __init__(self) -> None:
        self.told = Told()
        self.gave_up: list[int] = []
        self.given_up = threading.Event()
        self.fenced = threading.Event()
        self.closed: list[str] = []
        self.members: list[Member] = []
        self.alarm = Alarm(CLOCK)
        self._supervisor: pykka.ActorRef[SupervisorActor] | None = None

    def member(
        self, name: str, open_step: Callable[[], Scripted], actor: type[PumpActor] | None = None
    ) -> Member:
        def opened() -> OpenedScript:
            return OpenedScript(open_step(), lambda: self.closed.append(name))

        member = Member(Role(name, actor or PumpActor, opened), Pulse(CLOCK))
        self.members.append(member)
        return member

    def start(
        self, policy: RestartPolicy = AT_ONCE, watchdog_s: float = 60, *, waits: bool = True
    ) -> None:
        def give_up(status: int) -> None:
            self.gave_up.append(status)
            self.given_up.set()

        self._supervisor = SupervisorActor.start(
            self.members,
            alarm=self.alarm,
            clock=CLOCK,
            policy=policy,
            watchdog=timedelta(seconds=watchdog_s),
            telemetry=self.told,
            give_up=give_up,
            fenced=self.fenced.set,
        )
        if not waits:
            return
        # Started means that every member can be woken.
        self._supervisor.proxy().actor_urn.get(timeout=5)

    def stop_members(self, timeout_s: float = 5) -> bool:
        assert self._supervisor is not None
        return bool(self._supervisor.proxy().stop_members(timeout_s).get(timeout=10))

    def tear_down(self) -> None:
        if self._supervisor is not None and self._supervisor.is_alive():
            self.stop_members()
            self._supervisor.stop(block=True, timeout=5)
        self.alarm.stop()


@pytest.fixture
def house() -> Iterator[House]:
    logging.getLogger("pykka").setLevel(logging.CRITICAL)
    house = House()
    yield house
    house.tear_down()


def test_a_failed_step_is_closed_and_a_fresh_one_goes_on(house: House) -> None:
    good = Scripted(pause(60))
    steps = iter([Scripted(fails(ValueError("no"))), good])
    member = house.member("pump", lambda: next(steps))
    house.start()
    good.wait_for(1)
    assert house.closed == ["pump"]
    assert member.pulse.sign().starts == 2
    assert house.told.counts["actor_restarts"] == 1


def test_there_is_never_a_second_actor_of_a_role(house: House) -> None:
    """Two hundred failures: at any time at most one thread is inside a step."""
    inside = threading.Semaphore(1)
    overlaps: list[int] = []
    failures = 200
    opened = 0
    last = Scripted(pause(60))

    def crowded() -> float:
        if not inside.acquire(blocking=False):
            overlaps.append(1)
        inside.release()
        raise RuntimeError("again")

    def open_step() -> Scripted:
        nonlocal opened
        opened += 1
        return last if opened > failures else Scripted(crowded)

    threads_before = threading.active_count()
    house.member("pump", open_step)
    policy = RestartPolicy(
        restarts_max=failures + 1, backoff=Backoff(timedelta(0), timedelta(milliseconds=1))
    )
    house.start(policy)
    last.wait_for(1, timeout_s=30)
    assert overlaps == []
    assert len(house.closed) == failures
    assert threading.active_count() <= threads_before + 2


def test_too_many_failures_in_the_window_give_up_with_70(house: House) -> None:
    house.member("pump", lambda: Scripted(fails(ValueError("no"))))
    house.start()
    assert house.given_up.wait(5)
    assert house.gave_up == [70]
    assert "restarts-exhausted" in house.told.alerts


def test_a_fenced_step_is_told_and_nothing_starts_again(house: House) -> None:
    other = Scripted(pause(60))
    house.member("pump", lambda: Scripted(fails(Fenced("another process leads"))))
    house.member("inbox", lambda: other, InboxActor)  # type: ignore[arg-type]
    house.start()
    assert house.fenced.wait(5)
    assert house.gave_up == []
    assert house.members[0].pulse.sign().starts == 1
    assert house.told.alerts == ["fenced"]


def test_members_stop_in_reverse_order_of_their_start(house: House) -> None:
    steps = {name: Scripted(pause(60)) for name in ("dispatcher", "pump", "inbox")}
    for name, step in steps.items():
        house.member(name, lambda step=step: step)  # type: ignore[misc]
    house.start()
    for step in steps.values():
        step.wait_for(1)
    assert house.stop_members()
    assert house.closed == ["inbox", "pump", "dispatcher"]


def test_a_member_that_does_not_end_in_time_is_told_and_does_not_hang_the_stop(
    house: House,
) -> None:
    release = threading.Event()

    def hang() -> float:
        release.wait(20)
        return 60

    stuck = Scripted(hang)
    house.member("pump", lambda: stuck)
    house.start()
    stuck.wait_for(1)
    assert not house.stop_members(timeout_s=0.2)
    assert "actor-did-not-stop" in house.told.alerts
    release.set()


def test_a_step_over_its_bound_is_told_once(
    house: House, capfd: pytest.CaptureFixture[str]
) -> None:
    release = threading.Event()
    told = threading.Event()
    remember = house.told.alert

    def alert(name: str, text: str) -> None:
        remember(name, text)
        told.set()

    house.told.alert = alert  # type: ignore[method-assign]

    def hang() -> float:
        release.wait(20)
        return 60

    house.member("pump", lambda: Scripted(hang))
    house.start(watchdog_s=0.5)
    assert told.wait(5)
    release.set()
    assert house.told.alerts == ["watchdog"]
    assert "Thread" in capfd.readouterr().err


def test_a_step_that_fails_to_close_is_replaced_all_the_same(house: House) -> None:
    def close() -> None:
        raise OSError("cannot close")

    good = Scripted(pause(60))
    steps = iter(
        [OpenedScript(Scripted(fails(ValueError("no"))), close), OpenedScript(good, close)]
    )
    house.members.append(
        Member(Role("pump", PumpActor, lambda: next(steps)), Pulse(CLOCK)),
    )
    house.start()
    good.wait_for(1)


def test_what_is_no_exception_ends_one_actor_and_not_all(house: House) -> None:
    class Panic(BaseException):
        """As extension modules raise it."""

    def panics() -> float:
        raise Panic

    good, other = Scripted(pause(60)), Scripted(pause(60))
    steps = iter([Scripted(panics), good])
    house.member("pump", lambda: next(steps))
    inbox = house.member("inbox", lambda: other)
    house.start()
    good.wait_for(1)
    turns = other.turns
    inbox.ring()
    other.wait_for(turns + 1)
    assert inbox.pulse.sign().starts == 1


def test_a_supervisor_that_cannot_start_an_actor_ends_the_process_with_70(house: House) -> None:
    class Threadless(PumpActor):
        def __init__(self, post: Post) -> None:
            raise RuntimeError("can't start new thread")

    house.member("pump", lambda: Scripted(pause(60)), Threadless)
    house.start(waits=False)
    assert house.given_up.wait(5)
    assert house.gave_up == [70]
    assert "supervisor-failed" in house.told.alerts


def test_a_supervisor_that_cannot_restart_an_actor_ends_the_process_with_70(house: House) -> None:
    class Once(PumpActor):
        starts = 0

        def __init__(self, post: Post) -> None:
            Once.starts += 1
            if Once.starts > 1:
                raise RuntimeError("can't start new thread")
            super().__init__(post)

    house.member("pump", lambda: Scripted(fails(ValueError("no"))), Once)
    house.start()
    assert house.given_up.wait(5)
    assert house.gave_up == [70]


def test_an_actor_that_is_never_woken_again_is_told_like_one_that_is_stuck(
    house: House, capfd: pytest.CaptureFixture[str]
) -> None:
    """The tick of its pause is lost; so would be one whose thread went without a word."""

    class Deaf(Alarm):
        def after(self, seconds: float, call: Callable[[], None]) -> None:
            if seconds != LOST_S:
                super().after(seconds, call)

    house.alarm.stop()
    house.alarm = Deaf(CLOCK)
    step = Scripted(pause(LOST_S))
    house.member("pump", lambda: step)
    house.start(watchdog_s=0.2)
    step.wait_for(1)
    pulse = house.members[0].pulse
    deadline_s = CLOCK.monotonic() + 5
    while "watchdog" not in house.told.alerts and CLOCK.monotonic() < deadline_s:
        threading.Event().wait(0.01)
    assert house.told.alerts == ["watchdog"]
    assert pulse.sign().busy_s is None
    assert pulse.sign().overdue_s > 0.2
    assert "Thread" in capfd.readouterr().err


def test_nothing_is_expected_of_an_actor_that_was_stopped(house: House) -> None:
    step = Scripted(pause(0.01))
    member = house.member("pump", lambda: step)
    house.start()
    step.wait_for(1)
    assert house.stop_members()
    assert member.pulse.sign().overdue_s == 0


def test_a_wake_runs_the_next_turn_before_its_pause_is_over(house: House) -> None:
    step = Scripted(pause(60))
    member = house.member("pump", lambda: step)
    house.start()
    step.wait_for(1)
    member.ring()
    step.wait_for(2)


def test_many_wakes_while_a_step_runs_become_one_turn(house: House) -> None:
    entered, release = threading.Event(), threading.Event()

    def slow() -> float:
        entered.set()
        release.wait(10)
        return 60

    step = Scripted(slow, pause(60))
    member = house.member("pump", lambda: step)
    house.start()
    assert entered.wait(5)
    for _ in range(100):
        member.ring()
    release.set()
    step.wait_for(2)
    assert house.stop_members()
    assert step.turns == 2


def test_a_step_that_is_due_at_once_keeps_running_without_wakes(house: House) -> None:
    step = Scripted(*[pause(0)] * 50, pause(60))
    house.member("pump", lambda: step)
    house.start()
    step.wait_for(51)
    assert len(step.threads) == 1
