"""Lease and fence without a database: who leads when, and who must have stopped by then."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from fakes.election import MemoryLease, PaperTerm
from fakes.manual_clock import ManualClock
from fakes.steps import Scripted, Told, pause
from fakes.working_site import Broker
from msgexchange.lifecycle.leadership import LeasePolicy
from msgexchange.pipeline.leadership import Leadership, Right, Rightful, RightfulProducer
from msgexchange.ports import Record, RetryNow

LEASE_S = 5.0


@dataclass
class Process:
    """One candidate on a shared lease and a shared clock."""

    clock: ManualClock
    lease: MemoryLease
    name: str
    term: PaperTerm = field(default_factory=PaperTerm)
    told: Told = field(default_factory=Told)
    exits: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.due_s = 0.0
        self.leadership = Leadership(
            owner=self.name,
            store=self.lease,
            term=self.term,
            clock=self.clock,
            policy=LeasePolicy(lease=timedelta(seconds=LEASE_S)),
            telemetry=self.told,
            give_up=self.exits.append,
        )

    def turn(self) -> None:
        if self.clock.seconds >= self.due_s:
            self.due_s = self.clock.seconds + self.leadership.step()

    @property
    def leads(self) -> bool:
        return self.leadership.fence is not None

    @property
    def may_work(self) -> bool:
        return self.term.right is not None and self.term.right.holds


@dataclass
class World:
    """Steps of a hundredth of a second; never two that may begin work at once."""

    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.lease = MemoryLease(self.clock)
        self.processes: list[Process] = []

    def process(self, name: str) -> Process:
        self.processes.append(Process(self.clock, self.lease, name))
        return self.processes[-1]

    def pass_time(self, seconds: float, *, frozen: Process | None = None) -> None:
        for _ in range(round(seconds * 100)):
            self.clock.seconds += 0.01
            for process in self.processes:
                if process is not frozen:
                    process.turn()
            assert sum(process.may_work for process in self.processes) <= 1

    def seconds_until_leads(self, process: Process, *, frozen: Process | None = None) -> float:
        began_s = self.clock.seconds
        while not process.leads:
            assert self.clock.seconds - began_s < 60
            self.pass_time(0.01, frozen=frozen)
        return self.clock.seconds - began_s


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_leads_at_once_and_keeps_leading(world: World) -> None:
    first, second = world.process("a"), world.process("b")
    assert world.seconds_until_leads(first) <= 0.05
    world.pass_time(100)
    assert first.leads
    assert not second.leads
    assert first.leadership.fence == 1
    assert [standby.owner for standby in world.lease.standbys.values()] == ["b"]


def test_a_silent_leader_is_replaced_within_its_lease_and_two_seconds(world: World) -> None:
    first, second = world.process("a"), world.process("b")
    world.pass_time(10.3)
    assert world.seconds_until_leads(second, frozen=first) <= LEASE_S + 2
    assert second.leadership.fence == 2


def test_a_leader_that_wakes_after_its_lease_begins_no_work_and_stands_by(world: World) -> None:
    first, second = world.process("a"), world.process("b")
    world.pass_time(1)
    world.seconds_until_leads(second, frozen=first)
    assert not first.may_work
    world.pass_time(1)
    assert first.term.halted
    assert not first.leads
    assert second.leads
    assert "leadership-lost" in first.told.alerts
    world.pass_time(6)
    assert world.lease.standbys.keys() == {"a"}


def test_the_right_is_counted_from_the_start_of_the_renewing_call(world: World) -> None:
    """A call that takes two seconds prolongs the right by two seconds less."""
    first = world.process("a")
    world.pass_time(0.5)

    def slow() -> None:
        world.clock.seconds += 2

    world.lease.on_call = slow
    began_s = world.clock.seconds = first.due_s = 2.0
    first.turn()
    world.lease.on_call = lambda: None
    assert first.term.right is not None
    world.clock.seconds = began_s + LEASE_S - 1.01
    assert first.may_work
    world.clock.seconds = began_s + LEASE_S - 0.99
    assert not first.may_work


def test_without_renewal_the_actors_are_told_to_end_before_the_lease_does(world: World) -> None:
    first = world.process("a")
    world.pass_time(0.5)
    world.lease.down = True
    assert world.lease.until is not None
    while world.clock.now() < world.lease.until:
        world.pass_time(0.01)
        if first.term.halted:
            break
    assert first.term.halted
    assert world.clock.now() < world.lease.until
    world.pass_time(600)
    assert first.exits == []
    world.lease.down = False
    assert world.seconds_until_leads(first) <= 1


def test_a_clean_stop_hands_over_within_a_second(world: World) -> None:
    first, second = world.process("a"), world.process("b")
    world.pass_time(7.7)
    first.leadership.stop()
    assert world.seconds_until_leads(second) <= 1
    assert first.leadership.resigned


def test_the_lease_is_kept_while_the_actors_end_and_given_back_only_then(world: World) -> None:
    first, second = world.process("a"), world.process("b")
    world.pass_time(1)
    first.term.busy = True
    first.leadership.stop()
    world.pass_time(30)
    assert not second.leads
    assert not first.leadership.resigned
    first.term.busy = False
    assert world.seconds_until_leads(second) <= 1


def test_a_hung_actor_gives_leadership_away_and_asks_for_exit_70(world: World) -> None:
    first, second = world.process("a"), world.process("b")
    world.pass_time(1)
    first.term.stuck = "pump"
    first.term.busy = True
    assert world.seconds_until_leads(second) <= LEASE_S + 2
    assert first.exits == [70]


def test_an_actor_that_hangs_while_it_should_end_keeps_nobody_waiting(world: World) -> None:
    first, second = world.process("a"), world.process("b")
    world.pass_time(1)
    first.term.busy = True
    first.leadership.stop()
    world.pass_time(1)
    first.term.stuck = "pump"
    assert world.seconds_until_leads(second) <= LEASE_S + 2
    assert not first.leadership.resigned


def test_an_actor_that_hangs_after_the_lease_was_lost_ends_the_process_too(world: World) -> None:
    first = world.process("a")
    world.pass_time(1)
    world.lease.down = True
    first.term.busy = True
    world.pass_time(6)
    assert first.exits == []
    first.term.stuck = "pump"
    world.pass_time(3)
    assert first.exits == [70]


def test_a_fenced_leader_stands_by_again(world: World) -> None:
    first = world.process("a")
    world.pass_time(1)
    world.lease.owner = "b"
    first.term.overtaken = True
    world.pass_time(0.6)
    assert not first.leads
    assert first.exits == []
    assert world.seconds_until_leads(first) <= LEASE_S + 2
    assert first.leadership.fence == 2


def test_actors_that_cannot_be_started_give_the_lease_back(world: World) -> None:
    first, second = world.process("a"), world.process("b")
    first.term.fails_to_begin = True
    with pytest.raises(OSError, match="no thread"):
        first.leadership.step()
    assert first.term.right is None
    first.leadership.step()
    assert world.lease.until is None
    assert world.seconds_until_leads(second, frozen=first) <= 1


def test_a_leader_without_mailbox_or_broker_yields_to_a_standby_that_has_both(
    world: World,
) -> None:
    first, second = world.process("a"), world.process("b")
    world.pass_time(6)
    first.term.out_s = second.term.out_s = 299
    world.pass_time(6)
    first.term.out_s = second.term.out_s = 301
    world.pass_time(20)
    assert first.leads
    second.term.out_s = 0
    assert world.seconds_until_leads(second) <= 10
    world.pass_time(60)
    assert second.leads


def test_without_any_standby_a_leader_in_an_outage_stays(world: World) -> None:
    first = world.process("a")
    world.pass_time(6)
    first.term.out_s = 10_000
    world.pass_time(60)
    assert first.leadership.fence == 1


def test_no_step_begins_without_the_right() -> None:
    clock, inner = ManualClock(), Scripted(pause(7))
    right = Right(clock)
    step = Rightful(inner, right)
    step.step()
    assert inner.turns == 0
    right.extend(10)
    assert step.step() == 7
    clock.seconds = 10
    step.step()
    assert inner.turns == 1
    right.extend(20)
    right.revoke()
    step.step()
    assert inner.turns == 1


def test_nothing_is_sent_without_the_right() -> None:
    """As a process would that was frozen between its look at the fence and its window."""
    clock, broker = ManualClock(), Broker()
    right = Right(clock)
    right.extend(4)
    producer = RightfulProducer(broker.producer("schd"), right)
    record = Record(key=b"1", value=b"{}", headers=())
    producer.send([record])
    clock.seconds = 6
    with pytest.raises(RetryNow):
        producer.send([record])
    assert broker.topics == {"schd": [record]}
