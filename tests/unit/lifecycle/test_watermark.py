from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.watermark import (
    Gap,
    GapDecision,
    MailboxRow,
    ScanPlan,
    ScanPolicy,
    plan_scan,
)

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
) -> ScanPlan:
    return plan_scan(
        watermark,
        rows(*ids),
        ledger,
        started_at=T0 + timedelta(seconds=at_s),
        claim_max=claim,
        policy=POLICY,
    )


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


@given(
    committed=st.sets(st.integers(1, 40), max_size=40),
    ranks=st.lists(st.integers(), min_size=40, max_size=40),
    claim=st.integers(1, 7),
)
def test_any_order_of_commits_takes_in_every_id_once_in_order(
    committed: set[int], ranks: list[int], claim: int
) -> None:
    """Ids become visible in any order within the commit delay; the rest never come."""
    arrivals = sorted(committed, key=lambda id_: (ranks[id_ - 1], id_))
    visible: set[int] = set()
    watermark = 0
    ledger: list[Gap] = []
    taken: list[int] = []
    steps = len(arrivals) + 200
    for turn in range(steps):
        if arrivals:
            visible.add(arrivals.pop())
        above = sorted(id_ for id_ in visible if id_ > watermark)
        known = [gap for gap in ledger if gap.hi > watermark]
        plan = scan(watermark, above, known, at_s=turn, claim=claim)
        assert plan.watermark >= watermark
        ledger = [gap for gap in ledger if gap.lo not in plan.removed] + list(plan.written)
        ledger = sorted(
            (gap for gap in ledger if gap.decision is not GapDecision.FILLED),
            key=lambda gap: gap.lo,
        )
        taken += enqueued(plan)
        watermark = plan.watermark
    assert taken == sorted(committed)
    skipped = set(range(1, watermark + 1)) - committed
    ledgered = {id_ for gap in ledger for id_ in range(gap.lo, gap.hi + 1)}
    assert skipped <= ledgered
