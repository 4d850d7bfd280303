"""Where intake begins on a mailbox that this store has never read (spec 3.2)."""

from collections.abc import Sequence
from datetime import datetime

from msgexchange.clock import Clock
from msgexchange.lifecycle import ranges
from msgexchange.lifecycle.gap import Gap, GapDecision, StepRule
from msgexchange.lifecycle.late_watch import WatchPolicy
from msgexchange.lifecycle.ranges import Range
from msgexchange.lifecycle.watermark import may_exist
from msgexchange.ports import IntakeStore, Mailbox

SIGHT_IDS = 50_000
"""How far below the first W an id may be held by a transaction that is still open."""
ID_MAX = (1 << 63) - 1
FIRST_LOOK_AFTER = WatchPolicy().first


class StartAfterMissing(Exception):
    """The first start on a mailbox must say which id to begin after; the text says how."""


def begin_intake(
    store: IntakeStore,
    mailbox: Mailbox,
    *,
    start_after: str | None,
    clock: Clock,
    step_rule: StepRule | None = None,
) -> None:
    """Set the first W of a new store from ``mailbox.start-after``; later starts change nothing.

    Rows that are visible at or below W are passed by. An id that is not visible there may still be
    committed: it goes into the ledger as passed, so that the late watch finds its row.
    """
    if not store.is_new():
        return
    watermark, missing = _first(mailbox, start_after)
    now = clock.now()
    possible = may_exist(missing, step_rule)
    gaps = [_passed(lo, hi, watermark, now) for lo, hi in possible]
    store.begin_after(watermark, by="mailbox.start-after", now=now, gaps=gaps)


def _first(mailbox: Mailbox, start_after: str | None) -> tuple[int, list[Range]]:
    """W, and what was missing below it in the one statement that is the moment of the start."""
    visible: Sequence[int] = ()
    match start_after:
        case None:
            raise StartAfterMissing(
                "this store has never read the mailbox: set mailbox.start-after to the id to "
                f"begin after, or to oldest ({mailbox.oldest_id()}) or newest "
                f"({mailbox.newest_id()})"
            )
        case "oldest":
            lo = _lowest(mailbox.oldest_id() - 1)
            oldest = mailbox.ids_between(lo, ID_MAX, limit=1)
            watermark = oldest[0] - 1 if oldest else 0
        case "newest":
            lo = _lowest(mailbox.newest_id())
            visible = mailbox.ids_between(lo, ID_MAX, limit=2 * SIGHT_IDS)
            watermark = visible[-1] if visible else 0
        case _:
            watermark = int(start_after)
            lo = _lowest(watermark)
            visible = mailbox.ids_between(lo, watermark, limit=SIGHT_IDS)
    return watermark, ranges.missing(lo - 1, [*visible, watermark + 1])


def _lowest(watermark: int) -> int:
    return max(watermark - SIGHT_IDS, 0) + 1


def _passed(lo: int, hi: int, watermark: int, now: datetime) -> Gap:
    return Gap(
        lo=lo,
        hi=hi,
        first_seen=now,
        decision=GapDecision.PERMANENT,
        decided_at=now,
        why=f"not there when intake began after id {watermark}",
        next_look_at=now + FIRST_LOOK_AFTER,
    )
