"""How far the inbox may move: contiguous ids only, every missing id aged on its own (spec 3.2).

MySQL hands ids out before commit, so a missing id may still appear: stepping over it would lose
that message for good. A gap older than ``commit_delay_max`` is taken as a rolled-back insert, and
the late watch keeps an eye on it from then on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from msgexchange.ids import MailboxId


class GapDecision(StrEnum):
    """What is held of a range of missing ids."""

    OPEN = "OPEN"
    FILLED = "FILLED"
    PERMANENT = "PERMANENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Missing ids ``lo`` to ``hi``, both included; one ledger row, disjoint from every other."""

    lo: int
    hi: int
    first_seen: datetime
    looks: int = 1
    decision: GapDecision = GapDecision.OPEN
    decided_at: datetime | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class MailboxRow:
    """A visible row: its id and the length of its text in bytes (None where it holds no text)."""

    message_id: MailboxId
    text_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPolicy:
    """``pipeline.max-commit-delay`` and how much one scan may take in."""

    commit_delay_max: timedelta = timedelta(seconds=60)
    filled_kept_from: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What one scan changes, in one transaction: rows to enqueue, the new W, the ledger.

    ``removed`` are the ``lo`` of ledger rows to delete before ``written`` are inserted.
    """

    enqueue: tuple[MailboxRow, ...]
    watermark: int
    removed: tuple[int, ...]
    written: tuple[Gap, ...]
    open_gaps: tuple[Gap, ...]

    @property
    def changes_nothing(self) -> bool:
        return not (self.enqueue or self.removed or self.written)


def plan_scan(
    watermark: int,
    rows: Sequence[MailboxRow],
    ledger: Sequence[Gap],
    *,
    started_at: datetime,
    claim_max: int,
    policy: ScanPolicy,
) -> ScanPlan:
    """What follows from one listing of the ids above W.

    ``rows`` are all visible rows above W up to the last of them, in id order; ``ledger`` every
    gap above W that is OPEN or PERMANENT, in id order; ``started_at`` the database time at which
    the listing began, to which ages are counted.
    """
    missing = _missing(watermark, [row.message_id for row in rows])
    aged = [
        fragment
        for gap in ledger
        for fragment in _look(gap, missing, rows, started_at=started_at, policy=policy)
    ]
    known = [(gap.lo, gap.hi) for gap in ledger]
    fresh = [Gap(lo=lo, hi=hi, first_seen=started_at) for lo, hi in _subtract(missing, known)]
    after = sorted([*aged, *fresh], key=lambda gap: gap.lo)
    written, removed = _rows_changed(ledger, after)
    enqueue, moved_to = _advance(watermark, rows, after, claim_max)
    return ScanPlan(
        enqueue=tuple(enqueue),
        watermark=moved_to,
        removed=removed,
        written=written,
        open_gaps=tuple(gap for gap in after if gap.decision is GapDecision.OPEN),
    )


def _missing(watermark: int, ids: Iterable[int]) -> list[tuple[int, int]]:
    ranges = []
    expected = watermark + 1
    for id_ in ids:
        if id_ > expected:
            ranges.append((expected, id_ - 1))
        expected = id_ + 1
    return ranges


def _look(
    gap: Gap,
    missing: Sequence[tuple[int, int]],
    rows: Sequence[MailboxRow],
    *,
    started_at: datetime,
    policy: ScanPolicy,
) -> list[Gap]:
    """The gap after this listing: whole, split where ids appeared, or decided."""
    seen_to = rows[-1].message_id if rows else gap.lo - 1
    if gap.decision is not GapDecision.OPEN or gap.hi > seen_to:
        return [gap]
    still = [
        (max(lo, gap.lo), min(hi, gap.hi)) for lo, hi in missing if lo <= gap.hi and hi >= gap.lo
    ]
    age = started_at - gap.first_seen
    looked = replace(gap, looks=gap.looks + 1)
    if age > policy.commit_delay_max:
        looked = replace(
            looked,
            decision=GapDecision.PERMANENT,
            decided_at=started_at,
            why=f"still missing {age.total_seconds():.1f} s after first sight",
        )
    fragments = [replace(looked, lo=lo, hi=hi) for lo, hi in still]
    if age >= policy.filled_kept_from:
        fragments += [
            replace(gap, lo=lo, hi=hi, decision=GapDecision.FILLED, decided_at=started_at)
            for lo, hi in _subtract([(gap.lo, gap.hi)], still)
        ]
    return fragments


def _rows_changed(
    ledger: Sequence[Gap], after: Sequence[Gap]
) -> tuple[tuple[Gap, ...], tuple[int, ...]]:
    """Ledger rows to write and to remove; a look alone is not worth a write."""
    before = {gap.lo: replace(gap, looks=0) for gap in ledger}
    written = tuple(gap for gap in after if before.get(gap.lo) != replace(gap, looks=0))
    unchanged = {gap.lo for gap in after} - {gap.lo for gap in written}
    return written, tuple(sorted(lo for lo in before if lo not in unchanged))


def _advance(
    watermark: int, rows: Sequence[MailboxRow], gaps: Sequence[Gap], claim_max: int
) -> tuple[list[MailboxRow], int]:
    passable = {gap.lo: gap.hi for gap in gaps if gap.decision is GapDecision.PERMANENT}
    enqueue: list[MailboxRow] = []
    for row in rows:
        if watermark + 1 in passable:
            watermark = passable[watermark + 1]
        if row.message_id != watermark + 1 or len(enqueue) >= claim_max:
            break
        enqueue.append(row)
        watermark = row.message_id
    return enqueue, watermark


def _subtract(
    ranges: Sequence[tuple[int, int]], holes: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """What is in ``ranges`` and not in ``holes``; both sorted and disjoint."""
    left = []
    for lo, hi in ranges:
        start = lo
        for hole_lo, hole_hi in holes:
            if hole_hi < start or hole_lo > hi:
                continue
            if hole_lo > start:
                left.append((start, hole_lo - 1))
            start = max(start, hole_hi + 1)
        if start <= hi:
            left.append((start, hi))
    return left
