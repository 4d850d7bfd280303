from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

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
from msgexchange.lifecycle.watermark import ScanPlan, plan_scan

T0 = datetime(2026, 9, 3, 10, tzinfo=UTC)
POLICY = ScanPolicy(commit_delay_max=timedelta(seconds=60))


def rows(*ids: int) -> list[MailboxRow]:
    return [MailboxRow(MailboxId(id_), 10) for id_ in ids]


def scan(
    watermark: int,
    ids: Sequence[int],
    ledger: Sequence[Gap] = (),
    *,
    at_s: float = 0,
    claim: int = 99,
    beyond: Sequence[int] = (),
    policy: ScanPolicy = POLICY,
    probes: Mapping[int, Probe] | None = None,
    restart_ages: bool = False,
) -> ScanPlan:
    return plan_scan(
        watermark,
        rows(*ids),
        ledger,
        started_at=T0 + timedelta(seconds=at_s),
        claim_max=claim,
        policy=policy,
        ids_beyond=beyond,
        probes=probes,
        restart_ages=restart_ages,
    )


def permanent(lo: int, hi: int) -> Gap:
    return Gap(lo=lo, hi=hi, first_seen=T0, decision=GapDecision.PERMANENT, decided_at=T0)


def open_ranges(plan: ScanPlan) -> list[tuple[int, int, datetime]]:
    return [(gap.lo, gap.hi, gap.first_seen) for gap in plan.open_gaps]


def later(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def enqueued(plan: ScanPlan) -> list[int]:
    return [row.message_id for row in plan.enqueue]


def test_only_the_contiguous_prefix_is_taken_in() -> None:
    plan = scan(10, [11, 12, 14, 15])
    assert (enqueued(plan), plan.watermark) == ([11, 12], 12)
    assert [(gap.lo, gap.hi, gap.first_seen) for gap in plan.open_gaps] == [(13, 13, T0)]


def test_the_gap_directly_above_a_watermark_of_zero_is_a_gap_like_any_other() -> None:
    plan = scan(0, [3])
    assert (enqueued(plan), plan.watermark) == ([], 0)
    assert [(gap.lo, gap.hi) for gap in plan.open_gaps] == [(1, 2)]


def test_a_filled_gap_lets_w_move_and_resets_nobody_elses_clock() -> None:
    ledger = [Gap(lo=11, hi=11, first_seen=T0), Gap(lo=14, hi=14, first_seen=T0)]
    plan = scan(10, [11, 12, 13, 15], ledger, at_s=0.5)
    assert (enqueued(plan), plan.watermark) == ([11, 12, 13], 13)
    assert [(gap.lo, gap.first_seen) for gap in plan.open_gaps] == [(14, T0)]
    assert plan.removed == (11,)


def test_a_gap_keeps_its_first_sight_when_it_splits() -> None:
    plan = scan(10, [13, 16], [Gap(lo=11, hi=15, first_seen=T0)], at_s=5)
    open_gaps = [(gap.lo, gap.hi, gap.first_seen) for gap in plan.open_gaps]
    assert open_gaps == [(11, 12, T0), (14, 15, T0)]
    assert [gap.lo for gap in plan.written if gap.decision is GapDecision.FILLED] == [13]


def test_a_gap_is_passed_only_when_older_than_the_commit_delay() -> None:
    ledger = [Gap(lo=11, hi=12, first_seen=T0)]
    assert scan(10, [13], ledger, at_s=60).watermark == 10
    plan = scan(10, [13], ledger, at_s=60.1)
    assert (enqueued(plan), plan.watermark) == ([13], 13)
    [passed] = plan.written
    assert passed.decision is GapDecision.PERMANENT
    assert passed.why is not None


def test_a_gap_beyond_what_this_scan_listed_is_not_judged() -> None:
    ledger = [Gap(lo=14, hi=14, first_seen=T0)]
    plan = scan(10, [11, 12], ledger, at_s=500)
    assert plan.watermark == 12
    assert [gap.decision for gap in plan.open_gaps] == [GapDecision.OPEN]


def test_a_permanent_gap_above_w_is_passed_when_w_reaches_it() -> None:
    ledger = [
        Gap(lo=11, hi=11, first_seen=T0),
        Gap(lo=13, hi=13, first_seen=T0, decision=GapDecision.PERMANENT),
    ]
    assert scan(10, [11, 12, 14], ledger, at_s=1).watermark == 14


def test_a_scan_takes_in_no_more_than_its_claim() -> None:
    plan = scan(0, range(1, 20), claim=5)
    assert (enqueued(plan), plan.watermark) == ([1, 2, 3, 4, 5], 5)


def test_a_look_alone_writes_nothing() -> None:
    ledger = [Gap(lo=11, hi=11, first_seen=T0)]
    assert scan(10, [12], ledger, at_s=3).changes_nothing


def test_an_id_of_a_permanent_gap_that_comes_before_w_is_there_is_taken_in_order() -> None:
    ledger = [Gap(lo=11, hi=11, first_seen=later(59)), permanent(13, 15)]
    plan = scan(10, [12, 14, 16], ledger, at_s=61)
    assert plan.watermark == 10
    states = {(gap.lo, gap.hi): gap.decision for gap in plan.written}
    assert states == {
        (13, 13): GapDecision.PERMANENT,
        (14, 14): GapDecision.FILLED,
        (15, 15): GapDecision.PERMANENT,
    }
    after = [Gap(lo=11, hi=11, first_seen=later(59)), permanent(13, 13), permanent(15, 15)]
    assert enqueued(scan(10, [11, 12, 14, 16], after, at_s=62)) == [11, 12, 14, 16]


def test_a_gap_is_judged_as_far_as_the_listing_reached() -> None:
    plan = scan(10, [13], [Gap(lo=11, hi=15, first_seen=T0)], at_s=61)
    assert plan.watermark == 13
    assert open_ranges(plan) == [(14, 15, T0)]


def test_ids_beyond_the_claim_let_their_gaps_age_and_are_not_taken_in() -> None:
    first = scan(10, [12], beyond=[14, 20], claim=1)
    assert open_ranges(first) == [(11, 11, T0), (13, 13, T0), (15, 19, T0)]
    plan = scan(10, [12], first.written, beyond=[14, 20], claim=1, at_s=61)
    assert (enqueued(plan), plan.watermark) == ([12], 12)
    assert plan.open_gaps == ()


def test_a_gap_wider_than_any_sight_is_passed_like_any_other() -> None:
    first = scan(10, [9_000_000])
    assert open_ranges(first) == [(11, 8_999_999, T0)]
    assert scan(10, [9_000_000], first.written, at_s=61).watermark == 9_000_000


def test_a_row_that_was_seen_and_went_is_a_gap_anew() -> None:
    filled = Gap(lo=13, hi=14, first_seen=T0, decision=GapDecision.FILLED, decided_at=T0)
    plan = scan(12, [14, 15], [filled], at_s=90)
    assert open_ranges(plan) == [(13, 13, later(90))]
    assert [(gap.lo, gap.hi) for gap in plan.written if gap.decision is GapDecision.FILLED] == [
        (14, 14)
    ]


def test_a_clock_that_jumped_restarts_the_ages_and_passes_nothing() -> None:
    plan = scan(10, [12], [Gap(lo=11, hi=11, first_seen=T0)], at_s=3_600, restart_ages=True)
    assert (plan.watermark, open_ranges(plan)) == (10, [(11, 11, later(3_600))])


def test_a_first_sight_in_the_future_counts_from_now() -> None:
    plan = scan(10, [12], [Gap(lo=11, hi=11, first_seen=later(3_600))])
    assert open_ranges(plan) == [(11, 11, T0)]


def test_what_is_passed_is_watched_from_then_on() -> None:
    [passed] = scan(10, [13], [Gap(lo=11, hi=12, first_seen=T0)], at_s=61).written
    assert passed.next_look_at == later(121)


EXTEND = ScanPolicy(evidence=EvidenceUse.EXTEND)
EARLY = ScanPolicy(evidence=EvidenceUse.EARLY)
HELD = Probe(held=True)
EMPTY = Probe(held=False)
TWICE_EMPTY = Probe(held=False, empty_for=timedelta(seconds=3))


@pytest.mark.parametrize(
    ("policy", "probe", "age_s", "passed"),
    [
        (EXTEND, HELD, 61, False),
        (EXTEND, HELD, 600, False),
        (EXTEND, HELD, 601, True),
        (EXTEND, EMPTY, 61, True),
        (EXTEND, TWICE_EMPTY, 59, False),
        (EXTEND, None, 3_600, False),
        (EARLY, EMPTY, 59, False),
        (EARLY, TWICE_EMPTY, 3, True),
        (EARLY, HELD, 61, False),
        (POLICY, HELD, 61, True),
    ],
)
def test_evidence_decides_as_far_as_it_is_let(
    policy: ScanPolicy, probe: Probe | None, age_s: float, passed: bool
) -> None:
    probes = {} if probe is None else {11: probe}
    ledger = [Gap(lo=11, hi=11, first_seen=T0)]
    plan = scan(10, [12], ledger, at_s=age_s, policy=policy, probes=probes)
    assert (plan.watermark == 12) is passed
    if passed:
        assert plan.written[0].why


def test_the_ledger_says_that_a_writer_is_waited_for() -> None:
    ledger = [Gap(lo=11, hi=11, first_seen=T0)]
    plan = scan(10, [12], ledger, at_s=61, policy=EXTEND, probes={11: HELD})
    assert [gap.why for gap in plan.written] == ["a living writer holds it: waited for"]


STEP = ScanPolicy(step_rule=StepRule(step=3, offset=1))


def test_ids_off_the_declared_step_are_ledgered_at_once_in_one_row() -> None:
    plan = scan(0, [1, 4, 7], policy=STEP)
    assert (enqueued(plan), plan.watermark, plan.open_gaps) == ([1, 4, 7], 7, ())
    declared = plan.declared
    assert declared is not None
    assert [id_ for id_ in range(1, 12) if declared.holds(id_)] == [2, 3, 5, 6, 8, 9]
    assert (declared.decision, declared.next_look_at) == (GapDecision.PERMANENT, later(60))
    grown = scan(7, [10, 13], [declared], policy=STEP, at_s=9).declared
    assert grown is not None
    assert (grown.lo, grown.hi) == (declared.lo, 15)


def test_a_missing_id_on_the_step_is_a_gap_like_any_other() -> None:
    plan = scan(1, [10], policy=STEP)
    assert (plan.watermark, open_ranges(plan)) == (1, [(4, 7, T0)])
    plan = scan(1, [10], plan.written, policy=STEP, at_s=61)
    assert (enqueued(plan), plan.watermark) == ([10], 10)


def test_a_rule_that_is_off_leaves_the_declared_ids_below_w_explained() -> None:
    declared = scan(0, [1, 4], policy=STEP).declared
    assert declared is not None
    plan = scan(4, [6, 7], [declared])
    assert open_ranges(plan) == [(5, 5, T0)]
    assert plan.declared is not None
    assert plan.declared.hi == 4
    assert scan(4, [6, 7], [plan.declared, *plan.written]).changes_nothing


def test_declared_rows_are_closed_before_they_grow_too_wide_to_read() -> None:
    first = scan(0, [1], policy=STEP).declared
    assert first is not None
    wide = scan(1, range(4, 60_002, 3), [first], policy=STEP, claim=99_999).declared
    assert wide is not None
    second = scan(60_001, [60_004], [wide], policy=STEP).declared
    assert second is not None
    assert second.lo > wide.hi
    ids = range(1, 60_004)
    assert all(wide.holds(i) or second.holds(i) or i % 3 == 1 for i in ids)
