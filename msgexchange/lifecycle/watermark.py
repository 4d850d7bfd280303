"""How far the inbox may move: contiguous ids only, every missing id aged on its own (spec 3.2).

MySQL hands ids out before commit, so a missing id may still appear: stepping over it would lose
that message for good. A gap older than ``commit_delay_max`` is taken as a rolled-back insert, and
the late watch keeps an eye on it from then on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from msgexchange.lifecycle import ranges
from msgexchange.lifecycle.gap import (
    Gap,
    GapDecision,
    MailboxRow,
    Probe,
    ScanPolicy,
    StepRule,
    Verdict,
    judge,
)
from msgexchange.lifecycle.ranges import Range

__all__ = ["Gap", "GapDecision", "MailboxRow", "ScanPlan", "ScanPolicy", "may_exist", "plan_scan"]

DECLARED_IDS_MAX = 50_000
"""A declared row that holds so many ids is closed: the late watch reads it whole."""


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What one scan changes, in one transaction: rows to enqueue, the new W, the ledger.

    ``removed`` are the ``lo`` of ledger rows to delete before ``written`` are inserted;
    ``declared`` replaces the declared row of the same ``lo`` and ``step``.
    """

    enqueue: tuple[MailboxRow, ...]
    watermark: int
    removed: tuple[int, ...]
    written: tuple[Gap, ...]
    open_gaps: tuple[Gap, ...]
    declared: Gap | None = None

    @property
    def changes_nothing(self) -> bool:
        return not (self.enqueue or self.removed or self.written or self.declared)


def plan_scan(
    watermark: int,
    rows: Sequence[MailboxRow],
    ledger: Sequence[Gap],
    *,
    started_at: datetime,
    claim_max: int,
    policy: ScanPolicy,
    ids_beyond: Sequence[int] = (),
    probes: Mapping[int, Probe] | None = None,
    restart_ages: bool = False,
) -> ScanPlan:
    """What follows from one listing of the ids above W.

    ``rows`` are all visible rows above W up to the last of them, in id order, and ``ids_beyond``
    all visible ids from there to the last of those. ``ledger`` is every row that reaches above W
    and is not LATE, in id order; ``started_at`` the database time at which the listing began, to
    which ages are counted. ``probes`` are those made before it, by ``lo``. ``restart_ages`` when
    the database's clock cannot be trusted to have gone on evenly.
    """
    ids = [*(row.message_id for row in rows), *ids_beyond]
    rule = policy.step_rule
    missing = ranges.missing(watermark, ids)
    looked = _Look(
        absent=missing,
        missing=may_exist(missing, rule),
        seen_to=ids[-1] if ids else watermark,
        started_at=started_at,
        policy=policy,
        probes=probes or {},
        restart_ages=restart_ages,
    )
    plain = [gap for gap in ledger if gap.step == 1]
    aged = list(chain.from_iterable(map(looked.at, plain)))
    known = [(gap.lo, gap.hi) for gap in aged if gap.decision is not GapDecision.FILLED]
    fresh = [
        Gap(lo=lo, hi=hi, first_seen=started_at)
        for lo, hi in ranges.subtract(looked.missing, sorted(known))
    ]
    after = sorted([*aged, *fresh], key=lambda gap: gap.lo)
    written, removed = _rows_changed(plain, after)
    enqueue, moved_to = _advance(watermark, rows, after, claim_max, rule)
    declared = next((gap for gap in reversed(ledger) if gap.step > 1), None)
    return ScanPlan(
        enqueue=tuple(enqueue),
        watermark=moved_to,
        removed=removed,
        written=written,
        open_gaps=tuple(gap for gap in after if gap.decision is GapDecision.OPEN),
        declared=_declared(declared, watermark, moved_to, started_at, policy),
    )


def may_exist(missing: Sequence[Range], rule: StepRule | None) -> list[Range]:
    """Missing ranges from the first to the last id in them that the server may hand out."""
    if rule is None:
        return list(missing)
    trimmed = [(rule.ceil(lo), rule.floor(hi)) for lo, hi in missing]
    return [(lo, hi) for lo, hi in trimmed if lo <= hi]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One listing, as each row of the ledger is compared with it.

    ``missing`` is what of ``absent`` may exist at all.
    """

    absent: Sequence[Range]
    missing: Sequence[Range]
    seen_to: int
    started_at: datetime
    policy: ScanPolicy
    probes: Mapping[int, Probe]
    restart_ages: bool

    def at(self, gap: Gap) -> list[Gap]:
        """The row after this listing: whole, split where ids appeared, or decided."""
        gap = self._with_true_age(gap)
        judged = (gap.lo, min(gap.hi, self.seen_to))
        if judged[0] > judged[1]:
            return [gap]
        still = ranges.common(judged, self.missing)
        came = ranges.subtract([judged], ranges.common(judged, self.absent))
        # What lies above the last id of the listing keeps waiting: nothing is known of it.
        above = [(self.seen_to + 1, gap.hi)] if gap.hi > self.seen_to else []
        unseen = may_exist(above, self.policy.step_rule)
        match gap.decision:
            case GapDecision.FILLED:
                # A row that was seen and is gone again before it was taken in is a gap anew.
                return _parts(gap, [*came, *unseen])
            case GapDecision.OPEN:
                return self._open(gap, still, came, unseen)
            case _:
                filled = replace(
                    gap,
                    decision=GapDecision.FILLED,
                    decided_at=self.started_at,
                    next_look_at=None,
                    why="came before W passed it",
                )
                return [*_parts(gap, [*still, *unseen]), *_parts(filled, came)]

    def _open(
        self, gap: Gap, still: Sequence[Range], came: Sequence[Range], unseen: Sequence[Range]
    ) -> list[Gap]:
        age = self.started_at - gap.first_seen
        verdict = judge(gap, age, self.probes.get(gap.lo), self.policy)
        fragments = [*_parts(self._judged(gap, verdict), still), *_parts(gap, unseen)]
        if age >= self.policy.filled_kept_from:
            filled = replace(gap, decision=GapDecision.FILLED, decided_at=self.started_at)
            fragments += _parts(filled, came)
        return fragments

    def _judged(self, gap: Gap, verdict: Verdict) -> Gap:
        looked = replace(gap, looks=gap.looks + 1, why=verdict.why)
        if not verdict.passed:
            return looked
        return replace(
            looked,
            decision=GapDecision.PERMANENT,
            decided_at=self.started_at,
            next_look_at=self.started_at + self.policy.first_look_after,
        )

    def _with_true_age(self, gap: Gap) -> Gap:
        """A first sight in the future was stamped by a clock that has been set back since."""
        wrong = self.restart_ages or gap.first_seen > self.started_at
        if gap.decision is GapDecision.OPEN and wrong:
            return replace(gap, first_seen=self.started_at)
        return gap


def _parts(gap: Gap, parts: Sequence[Range]) -> list[Gap]:
    return [replace(gap, lo=lo, hi=hi) for lo, hi in parts]


def _rows_changed(
    ledger: Sequence[Gap], after: Sequence[Gap]
) -> tuple[tuple[Gap, ...], tuple[int, ...]]:
    """Ledger rows to write and to remove; a look alone is not worth a write."""
    before = {gap.lo: replace(gap, looks=0) for gap in ledger}
    written = tuple(gap for gap in after if before.get(gap.lo) != replace(gap, looks=0))
    unchanged = {gap.lo for gap in after} - {gap.lo for gap in written}
    return written, tuple(sorted(lo for lo in before if lo not in unchanged))


def _advance(
    watermark: int,
    rows: Sequence[MailboxRow],
    gaps: Sequence[Gap],
    claim_max: int,
    rule: StepRule | None,
) -> tuple[list[MailboxRow], int]:
    passable = {gap.lo: gap.hi for gap in gaps if gap.decision is GapDecision.PERMANENT}
    enqueue: list[MailboxRow] = []
    for row in rows[:claim_max]:
        if row.message_id != _passed(watermark, passable, rule) + 1:
            break
        enqueue.append(row)
        watermark = row.message_id
    return enqueue, watermark


def _passed(watermark: int, passable: Mapping[int, int], rule: StepRule | None) -> int:
    """W past every permanent gap and declared id directly above it."""
    while True:
        above = watermark + 1
        if above in passable:
            watermark = passable[above]
        elif rule is not None and rule.is_off(above):
            watermark = rule.ceil(above) - 1
        else:
            return watermark


def _declared(
    row: Gap | None, watermark: int, moved_to: int, started_at: datetime, policy: ScanPolicy
) -> Gap | None:
    """The declared row to write, None where it need not change."""
    rule = policy.step_rule
    if rule is None:
        trimmed = None if row is None else replace(row, hi=max(watermark, row.lo))
        return None if trimmed == row else trimmed
    hi = rule.floor(moved_to) + rule.step - 1
    fits = row is not None and row.step == rule.step and not rule.is_off(row.lo - 1)
    if row is not None and fits and row.hi >= hi:
        return None
    fresh = Gap(
        lo=rule.floor(watermark) + 1,
        hi=hi,
        first_seen=started_at,
        decision=GapDecision.PERMANENT,
        decided_at=started_at,
        why=f"declared: ids are {rule.offset} and every {rule.step} from there",
        step=rule.step,
        next_look_at=started_at + policy.first_look_after,
    )
    if row is None or not fits:
        return fresh
    if row.hi - row.lo >= DECLARED_IDS_MAX:
        return replace(fresh, lo=row.hi + 2)
    return replace(row, hi=hi, decided_at=started_at)
