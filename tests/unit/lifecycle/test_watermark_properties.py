"""Any interleaving of commits, scans, claims, restarts and clock jumps loses nothing (I1, I10)."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.gap import (
    EvidenceUse,
    Gap,
    GapDecision,
    MailboxRow,
    Probe,
    ScanPolicy,
    StepRule,
)
from msgexchange.lifecycle.ranges import common, joined, missing, subtract
from msgexchange.lifecycle.watermark import ScanPlan, plan_scan

T0 = datetime(2026, 9, 3, 10, tzinfo=UTC)
DELAY_S = 20


@dataclass
class World:
    """A mailbox, a ledger and W; checks at every scan what must always hold."""

    policy: ScanPolicy
    visible: set[int] = field(default_factory=set)
    watermark: int = 0
    before: int = 0
    ledger: dict[tuple[int, int], Gap] = field(default_factory=dict)
    taken: list[int] = field(default_factory=list)
    first_missed: dict[int, float] = field(default_factory=dict)

    def scan(
        self,
        at_s: float,
        *,
        claim: int,
        sees_beyond: bool,
        held: frozenset[int] = frozenset(),
        restart_ages: bool = False,
    ) -> ScanPlan:
        above = sorted(id_ for id_ in self.visible if id_ > self.watermark)
        rows, beyond = above[:claim], above[claim:] if sees_beyond else []
        ledger = sorted(
            (
                gap
                for gap in self.ledger.values()
                if gap.hi > self.watermark and gap.decision is not GapDecision.LATE
            ),
            key=lambda gap: gap.lo,
        )
        probes = {
            gap.lo: Probe(held=any(gap.holds(id_) for id_ in held), empty_for=timedelta(seconds=9))
            for gap in ledger
        }
        seen_to = max([*rows, *beyond], default=0)
        if restart_ages:
            still_open = [gap for gap in ledger if gap.decision is GapDecision.OPEN]
            for id_ in self.first_missed:
                if any(gap.holds(id_) for gap in still_open):
                    self.first_missed[id_] = at_s
        for id_ in range(self.watermark + 1, seen_to):
            if id_ not in self.visible:
                self.first_missed.setdefault(id_, at_s)
        plan = plan_scan(
            self.watermark,
            [MailboxRow(MailboxId(id_), 1) for id_ in rows],
            ledger,
            started_at=T0 + timedelta(seconds=at_s),
            claim_max=claim,
            policy=self.policy,
            ids_beyond=beyond,
            probes=probes,
            restart_ages=restart_ages,
        )
        self._apply(plan, claim)
        self._check(plan, at_s)
        return plan

    def _apply(self, plan: ScanPlan, claim: int) -> None:
        assert plan.watermark >= self.watermark
        assert len(plan.enqueue) <= claim
        for lo in plan.removed:
            del self.ledger[lo, 1]
        for gap in plan.written:
            assert (gap.lo, gap.step) not in self.ledger
            self.ledger[gap.lo, gap.step] = gap
        if plan.declared is not None:
            self.ledger[plan.declared.lo, plan.declared.step] = plan.declared
        self.taken += [row.message_id for row in plan.enqueue]
        self.before, self.watermark = self.watermark, plan.watermark

    def _check(self, plan: ScanPlan, at_s: float) -> None:
        assert self.taken == sorted(set(self.taken))
        assert self.taken[-1:] <= [self.watermark]
        plain = sorted((g for g in self.ledger.values() if g.step == 1), key=lambda g: g.lo)
        assert all(a.hi < b.lo for a, b in pairwise(plain))
        passed = [g for g in self.ledger.values() if g.decision is GapDecision.PERMANENT]
        for id_ in range(self.before + 1, self.watermark + 1):
            if id_ in self.visible:
                assert id_ in self.taken, f"{id_} was passed over"
                continue
            assert any(gap.holds(id_) for gap in passed), f"{id_} is unexplained"
            rule = self.policy.step_rule
            on_step = rule is None or not rule.is_off(id_)
            if on_step and self.policy.evidence is not EvidenceUse.EARLY:
                assert at_s - self.first_missed[id_] > DELAY_S, f"{id_} was passed too young"


TURNS = st.lists(
    st.tuples(
        st.floats(0.02, 9),
        st.integers(1, 7),
        st.booleans(),
        st.integers(0, 3),
        st.sampled_from([False] * 9 + [True]),
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(
    arrivals=st.lists(st.integers(1, 40), max_size=40, unique=True),
    turns=TURNS,
)
def test_any_interleaving_takes_in_every_id_once_and_in_order(
    arrivals: list[int], turns: list[tuple[float, int, bool, int, bool]]
) -> None:
    """Rows come in any order, in any number between two scans; clocks jump; the rest never come.

    What comes only after W was there is not lost: it lies in a permanent range.
    """
    world = World(ScanPolicy(commit_delay_max=timedelta(seconds=DELAY_S)))
    at_s = 0.0
    for pause_s, claim, sees_beyond, coming, jump in turns:
        for id_ in arrivals[:coming]:
            world.visible.add(id_)
        late = [id_ for id_ in arrivals[:coming] if id_ <= world.watermark]
        passed = [g for g in world.ledger.values() if g.decision is GapDecision.PERMANENT]
        assert all(any(gap.holds(id_) for gap in passed) for id_ in late)
        world.visible -= set(late)
        del arrivals[:coming]
        at_s += pause_s
        world.scan(at_s, claim=claim, sees_beyond=sees_beyond, restart_ages=jump)
    for _ in range(40):
        at_s += 5
        world.scan(at_s, claim=5, sees_beyond=True)
    assert world.taken == sorted(world.visible)
    assert world.scan(at_s + 1, claim=5, sees_beyond=True).changes_nothing


@settings(max_examples=60, deadline=None)
@given(
    ordinals=st.lists(st.integers(0, 12), max_size=13, unique=True),
    offset=st.integers(1, 3),
    turns=TURNS,
)
def test_a_declared_step_changes_nothing_but_what_is_waited_for(
    ordinals: list[int],
    offset: int,
    turns: list[tuple[float, int, bool, int, bool]],
) -> None:
    rule = StepRule(3, offset)
    world = World(ScanPolicy(commit_delay_max=timedelta(seconds=DELAY_S), step_rule=rule))
    arrivals = [offset + 3 * ordinal for ordinal in ordinals]
    at_s = 0.0
    for pause_s, claim, sees_beyond, coming, _jump in turns:
        world.visible |= {id_ for id_ in arrivals[:coming] if id_ > world.watermark}
        del arrivals[:coming]
        at_s += pause_s
        world.scan(at_s, claim=claim, sees_beyond=sees_beyond)
        assert not any(rule.is_off(g.lo) for g in world.ledger.values() if g.step == 1)
    for _ in range(40):
        at_s += 5
        world.scan(at_s, claim=5, sees_beyond=True)
    assert world.taken == sorted(world.visible)


@settings(max_examples=60, deadline=None)
@given(held=st.sets(st.integers(1, 10), min_size=1), pauses=st.lists(st.floats(1, 15), min_size=8))
def test_a_held_writer_is_never_passed_before_the_proven_delay(
    held: set[int], pauses: list[float]
) -> None:
    proven_s = 100
    policy = ScanPolicy(
        commit_delay_max=timedelta(seconds=DELAY_S),
        commit_delay_proven_max=timedelta(seconds=proven_s),
        evidence=EvidenceUse.EXTEND,
    )
    world = World(policy, visible=set(range(1, 12)) - held)
    at_s = 0.0
    for pause_s in pauses:
        at_s += pause_s
        assume(at_s - pauses[0] <= proven_s)
        world.scan(at_s, claim=50, sees_beyond=True, held=frozenset(held))
    assert world.watermark == min(held) - 1
    # It commits at last: nothing was skipped meanwhile.
    world.visible |= held
    world.scan(at_s + 1, claim=50, sees_beyond=True)
    assert world.taken == list(range(1, 12))


RANGES = st.sets(st.integers(1, 60)).map(
    lambda ids: joined(((i, i) for i in sorted(ids)), distance_max=1)
)


def ids_of(ranges: list[tuple[int, int]]) -> set[int]:
    return {id_ for lo, hi in ranges for id_ in range(lo, hi + 1)}


@given(one=RANGES, other=RANGES, lo=st.integers(1, 60), width=st.integers(0, 30))
def test_range_arithmetic_is_set_arithmetic(
    one: list[tuple[int, int]], other: list[tuple[int, int]], lo: int, width: int
) -> None:
    assert ids_of(subtract(one, other)) == ids_of(one) - ids_of(other)
    assert ids_of(common((lo, lo + width), one)) == ids_of(one) & set(range(lo, lo + width + 1))
    ids = sorted(ids_of(one))
    assert ids_of(missing(0, ids)) == set(range(1, max(ids, default=0))) - set(ids)


def test_joined_keeps_far_ranges_apart() -> None:
    assert joined([(1, 2), (4, 4), (9, 9)], distance_max=2) == [(1, 4), (9, 9)]


def test_a_gap_row_that_splits_keeps_all_it_held() -> None:
    gap = Gap(lo=1, hi=9, first_seen=T0, looks=4, why="x")
    assert replace(gap, lo=3).first_seen == T0
