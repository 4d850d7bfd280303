"""When a passed gap is looked at again, and what a row found in it makes of it (spec 3.2)."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from msgexchange.lifecycle import ranges
from msgexchange.lifecycle.gap import Gap, GapDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPolicy:
    """Doubling from ``first`` to ``longest`` while the gap is young, then daily while it is kept.

    ``young_for`` is ``pipeline.late-watch``.
    """

    first: timedelta = timedelta(minutes=1)
    longest: timedelta = timedelta(minutes=60)
    young_for: timedelta = timedelta(hours=24)
    daily: timedelta = timedelta(days=1)
    kept_for: timedelta = timedelta(days=90)


def next_look(decided_at: datetime, looked_at: datetime, policy: WatchPolicy) -> datetime | None:
    """When a gap decided then and looked at now is looked at again; None: never."""
    age = looked_at - decided_at
    if age >= policy.kept_for:
        return None
    if age >= policy.young_for:
        return looked_at + policy.daily
    # Waiting as long as it is old doubles its age at every look.
    return looked_at + min(max(age, policy.first), policy.longest)


def after_look(
    gap: Gap, late: Collection[int], *, looked_at: datetime, policy: WatchPolicy
) -> list[Gap]:
    """The rows that replace ``gap`` once these of its ids were found to have come."""
    assert gap.decided_at is not None
    assert all(gap.holds(id_) for id_ in late)
    watched = replace(
        gap, looks=gap.looks + 1, next_look_at=next_look(gap.decided_at, looked_at, policy)
    )
    came = [
        replace(
            gap,
            lo=id_,
            hi=id_,
            step=1,
            decision=GapDecision.LATE,
            decided_at=looked_at,
            next_look_at=None,
            why=f"came after W had passed it at {gap.decided_at:%Y-%m-%d %H:%M:%S} UTC",
        )
        for id_ in sorted(late)
    ]
    if gap.step > 1:
        return [watched, *came]
    left = ranges.subtract([(gap.lo, gap.hi)], [(id_, id_) for id_ in sorted(late)])
    return [*(replace(watched, lo=lo, hi=hi) for lo, hi in left), *came]
