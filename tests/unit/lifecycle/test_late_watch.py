"""When a passed gap is looked at again, and what a late row makes of it (spec 3.2)."""

from datetime import timedelta
from itertools import pairwise

from factories import T0
from msgexchange.lifecycle.gap import Gap, GapDecision
from msgexchange.lifecycle.late_watch import WatchPolicy, after_look, next_look

POLICY = WatchPolicy()


def test_looks_double_to_an_hour_then_are_daily_and_end_after_ninety_days() -> None:
    at = T0 + POLICY.first
    ages: list[float] = []
    while at is not None:
        ages.append((at - T0) / timedelta(minutes=1))
        following = next_look(T0, at, POLICY)
        if following is None:
            break
        at = following
    assert ages[:9] == [1, 2, 4, 8, 16, 32, 64, 124, 184]
    day = 24 * 60
    young = [age for age in ages if age <= day]
    assert all(b - a <= 60 for a, b in pairwise(young))
    old = [age for age in ages if age >= day]
    assert {b - a for a, b in pairwise(old)} == {day}
    assert 90 * day <= ages[-1] < 91 * day


def test_a_late_row_splits_its_range_and_the_rest_is_watched_on() -> None:
    gap = Gap(lo=4, hi=9, first_seen=T0, decision=GapDecision.PERMANENT, decided_at=T0, why="old")
    looked_at = T0 + timedelta(minutes=2)
    after = after_look(gap, {4, 7}, looked_at=looked_at, policy=POLICY)
    assert [(one.lo, one.hi, one.decision.value) for one in after] == [
        (5, 6, "PERMANENT"),
        (8, 9, "PERMANENT"),
        (4, 4, "LATE"),
        (7, 7, "LATE"),
    ]
    assert {one.next_look_at for one in after} == {looked_at + timedelta(minutes=2), None}
    assert {one.decided_at for one in after if one.decision is GapDecision.PERMANENT} == {T0}


def test_a_declared_row_stays_whole_when_a_row_off_the_step_comes() -> None:
    declared = Gap(lo=2, hi=9, step=3, first_seen=T0, decision=GapDecision.PERMANENT, decided_at=T0)
    kept, late = after_look(declared, {5}, looked_at=T0, policy=POLICY)
    assert (kept.lo, kept.hi, kept.step) == (2, 9, 3)
    assert (late.lo, late.hi, late.step, late.decision) == (5, 5, 1, GapDecision.LATE)
