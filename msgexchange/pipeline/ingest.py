"""Mailbox rows into the inbox: scan, age gaps, move W (spec 3.2)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.ids import Fence
from msgexchange.lifecycle.watermark import GapDecision, ScanPlan, ScanPolicy, plan_scan
from msgexchange.pipeline.step import NOW, PauseS
from msgexchange.ports import IntakeStore, Mailbox, Telemetry

SIGHT_IDS = 50_000
"""How far above W a scan sees while a gap is open, so that many gaps age together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRules:
    """``pipeline.poll-interval``, ``.poll-interval-busy``, ``.claim-batch``."""

    poll_interval: timedelta = timedelta(seconds=1)
    poll_interval_busy: timedelta = timedelta(milliseconds=20)
    claim_min: int = 50
    claim_max: int = 1_000
    scan: ScanPolicy = field(default_factory=ScanPolicy)


class Ingest:
    """One scan a step; scanning again is harmless, an interrupted scan is repaired by the next."""

    def __init__(
        self,
        *,
        store: IntakeStore,
        mailbox: Mailbox,
        clock: Clock,
        fence: Fence,
        rules: IngestRules,
        telemetry: Telemetry,
        wake_pump: Callable[[], None],
    ) -> None:
        self._store = store
        self._mailbox = mailbox
        self._clock = clock
        self._fence = fence
        self._rules = rules
        self._telemetry = telemetry
        self._wake_pump = wake_pump
        self._claim = rules.claim_min
        self._last_id = 0
        self._quiet_since_s = clock.monotonic()

    def step(self) -> PauseS:
        state = self._store.state()
        gap_open = any(gap.decision is GapDecision.OPEN for gap in state.ledger)
        listing = self._mailbox.list_after(
            state.watermark,
            limit=SIGHT_IDS if gap_open else self._claim,
            id_max=state.watermark + SIGHT_IDS if gap_open else None,
        )
        plan = plan_scan(
            state.watermark,
            listing.rows,
            state.ledger,
            started_at=listing.started_at,
            claim_max=self._claim,
            policy=self._rules.scan,
        )
        if not plan.changes_nothing and not self._apply(plan, state.watermark):
            return NOW
        newest = listing.rows[-1].message_id if listing.rows else self._last_id
        return self._pause(plan, grew=newest > self._last_id, newest=newest)

    def _apply(self, plan: ScanPlan, watermark: int) -> bool:
        """False when somebody else moved W since it was read: the plan is void."""
        with self._store.transaction(self._fence) as transaction:
            if transaction.state().watermark != watermark:
                return False
            inserted = transaction.apply(plan, now=self._clock.now())
        if plan.watermark > watermark:
            self._wake_pump()
        self._telemetry.count("inbox_enqueued", inserted)
        for gap in plan.written:
            if gap.decision is GapDecision.PERMANENT:
                self._telemetry.count("gaps_permanent", gap.hi - gap.lo + 1)
                self._telemetry.log("gap.permanent", lo=gap.lo, hi=gap.hi, why=gap.why)
        return True

    def _pause(self, plan: ScanPlan, *, grew: bool, newest: int) -> PauseS:
        full = len(plan.enqueue) >= self._claim
        self._claim = min(self._claim * 2, self._rules.claim_max) if full else self._rules.claim_min
        self._last_id = max(self._last_id, newest)
        if full:
            return NOW
        poll_s = self._rules.poll_interval.total_seconds()
        if grew or plan.enqueue:
            self._quiet_since_s = self._clock.monotonic()
        elif self._clock.monotonic() - self._quiet_since_s >= poll_s:
            return poll_s
        return self._rules.poll_interval_busy.total_seconds()


class StartAfterMissing(Exception):
    """The first start on a mailbox must say which id to begin after; the text says how."""


def begin_intake(
    store: IntakeStore, mailbox: Mailbox, *, start_after: str | None, clock: Clock
) -> None:
    """Set the first W of a new store from ``mailbox.start-after``; later starts change nothing."""
    if not store.is_new():
        return
    match start_after:
        case None:
            raise StartAfterMissing(
                "this store has never read the mailbox: set mailbox.start-after to the id to "
                f"begin after, or to oldest ({mailbox.oldest_id()}) or newest "
                f"({mailbox.newest_id()})"
            )
        case "oldest":
            watermark = max(mailbox.oldest_id() - 1, 0)
        case "newest":
            watermark = mailbox.newest_id()
        case _:
            watermark = int(start_after)
    store.begin_after(watermark, by="mailbox.start-after", now=clock.now())
