"""Crashes and lost connections: what is charged to the head, and what is not."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from factories import T0, entry
from fakes.manual_clock import ManualClock
from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.failure import Exhaust, FailurePolicy, Retry, charge_crash
from msgexchange.pipeline.attempt import HEADS_AFTER_START, CarefulStart, Losses
from msgexchange.ports import Dependency, Fenced, OpenAttempt, Unavailable

HEAD, NEXT = MailboxId(7), MailboxId(8)
NEVER = float("-inf")


@dataclass
class Marks:
    """The attempts' part of a pump store."""

    found: OpenAttempt | None = None
    open: list[MailboxId] = field(default_factory=list)
    failure: Exception | None = None

    def found_attempt(self) -> OpenAttempt | None:
        return self.found

    def open_attempt(self, fence: Fence, message_id: MailboxId, *, now: datetime) -> None:
        self.open.append(message_id)

    def close_attempt(self, fence: Fence) -> None:
        if self.failure is not None:
            raise self.failure
        self.open.clear()


def careful(marks: Marks) -> CarefulStart:
    return CarefulStart(marks, ManualClock(), Fence(3))


def test_an_attempt_found_open_is_charged_to_its_message_alone_and_once() -> None:
    start = careful(Marks(found=OpenAttempt(HEAD, Fence(2), crashes=1)))
    assert start.crashed(NEXT) is None
    found = start.crashed(HEAD)
    assert found is not None
    assert found.crashes == 2
    assert start.crashed(HEAD) == found
    start.charged()
    assert start.crashed(HEAD) is None


def test_so_many_heads_as_a_batch_may_hold_run_one_by_one() -> None:
    start = careful(Marks())
    singly = 0
    while start.on:
        singly += 1
        start.committed()
    assert singly == HEADS_AFTER_START


def test_after_a_loss_its_batch_runs_one_by_one_until_an_idle_turn() -> None:
    start = careful(Marks())
    start.over()
    was_on = [start.on]
    start.again(3)
    was_on.append(start.on)
    start.over()
    was_on.append(start.on)
    assert was_on == [False, True, False]


@pytest.mark.parametrize("failure", [None, Fenced("2"), Unavailable(Dependency.STORE, "gone")])
def test_an_attempt_that_is_interrupted_is_closed_as_far_as_that_can_be(
    failure: Exception | None,
) -> None:
    marks = Marks(failure=failure)
    start = careful(marks)
    start.begin(HEAD)
    start.interrupted()
    assert marks.open == ([] if failure is None else [HEAD])


def test_five_crashes_are_the_limit_whatever_max_attempts_says() -> None:
    policy = FailurePolicy(attempts_max=1)
    for crashes in range(1, 5):
        verdict = charge_crash(entry(attempts=crashes - 1), crashes=crashes, now=T0, policy=policy)
        assert verdict == Retry(crashes, T0 + policy.backoff.after(crashes))
    assert charge_crash(entry(attempts=4), crashes=5, now=T0, policy=policy) == Exhaust(5)


def test_three_losses_with_green_probes_in_between_are_one_charge() -> None:
    clock, green_at_s = ManualClock(10), [NEVER]
    losses = Losses(clock, lambda _: green_at_s[0])
    charges = []
    for _ in range(6):
        charged = losses.lost(HEAD, Dependency.MAILBOX)
        charges.append(charged)
        if charged:
            losses.charged()
        clock.seconds += 2
        green_at_s[0] = clock.seconds - 1
    assert charges == [False, False, True, False, False, True]


def test_an_outage_counts_as_one_loss_however_often_it_is_tried() -> None:
    clock = ManualClock(10)
    losses = Losses(clock, lambda _: 5.0)
    for _ in range(100):
        assert not losses.lost(HEAD, Dependency.STORE)
        clock.seconds += timedelta(seconds=16).total_seconds()


def test_losses_on_another_head_or_dependency_count_anew() -> None:
    clock, green_at_s = ManualClock(10), [NEVER]
    losses = Losses(clock, lambda _: green_at_s[0])
    for head, dependency in [
        (HEAD, Dependency.STORE),
        (HEAD, Dependency.STORE),
        (HEAD, Dependency.MAILBOX),
        (NEXT, Dependency.MAILBOX),
        (NEXT, Dependency.MAILBOX),
    ]:
        assert not losses.lost(head, dependency)
        clock.seconds += 2
        green_at_s[0] = clock.seconds - 1
    assert losses.lost(NEXT, Dependency.MAILBOX)
