"""Mailbox rows into the inbox: scan, age gaps, move W (spec 3.2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.ids import Fence
from msgexchange.lifecycle.gap import Gap, GapDecision, Probe, ScanPolicy, StepRule
from msgexchange.lifecycle.watermark import ScanPlan, plan_scan
from msgexchange.pipeline.gap_evidence import GapEvidence
from msgexchange.pipeline.id_guard import IdGuard
from msgexchange.pipeline.mailbox_time import MailboxTime
from msgexchange.pipeline.step import NOW, PauseS
from msgexchange.ports import (
    GapProbe,
    GapStore,
    IntakeState,
    IntakeStore,
    Listing,
    Mailbox,
    Telemetry,
)
from msgexchange.ports.tracing import UNTRACED, Tracing

SIGHT_IDS = 50_000
"""How many rows above W are seen while a gap is open, so that many gaps age together."""
LOOK_BEYOND_EVERY_S = 1.0
"""Rows beyond those a scan can take in are only seen to age their gaps."""
HALTED_TOLD_EVERY_S = 600.0
SHARE_OF_TIME_MAX = 4
"""While a gap is open, the pause between scans is so many times a scan's length at least."""
ID_MAX = (1 << 63) - 1


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
        gaps: GapStore,
        mailbox: Mailbox,
        probe: GapProbe | None,
        clock: Clock,
        fence: Fence,
        rules: IngestRules,
        telemetry: Telemetry,
        wake_pump: Callable[[], None],
        tracing: Tracing = UNTRACED,
    ) -> None:
        self._store = store
        self._gaps = gaps
        self._mailbox = mailbox
        self._clock = clock
        self._fence = fence
        self._rules = rules
        self._telemetry = telemetry
        self._wake_pump = wake_pump
        self._tracing = tracing
        self._guard = IdGuard(mailbox, gaps, clock)
        self._time = MailboxTime(clock)
        self._evidence = GapEvidence(probe, policy=rules.scan, clock=clock, telemetry=telemetry)
        self._claim = rules.claim_min
        self._last_id = 0
        self._quiet_since_s = clock.monotonic()
        self._beyond_at_s = float("-inf")
        self._halt_told_at_s = float("-inf")

    def step(self) -> PauseS:
        began_s = self._clock.monotonic()
        state = self._store.state()
        if state.halted is not None:
            return self._wait_for_operator(state.halted)
        objection = self._guard.objection(state)
        if objection is not None:
            self._gaps.halt(self._fence, objection, now=self._clock.now())
            return self._wait_for_operator(objection)
        return self._scan(state, began_s)

    def _scan(self, state: IntakeState, began_s: float) -> PauseS:
        # Probes come first: a writer that commits after its probe is seen by the listing.
        probes = self._evidence.look(state.ledger, now=self._time.now())
        asked_at_s = self._clock.monotonic()
        listing = self._mailbox.list_after(state.watermark, limit=self._claim, id_max=None)
        jumped = self._has_jumped(listing, asked_at_s)
        if listing.newest < state.watermark:
            self._guard.suspect()
        beyond = self._look_beyond(state, listing)
        rule = self._step_rule(state, [*(row.message_id for row in listing.rows), *beyond])
        plan = self._plan(state, listing, beyond, probes, rule, restart_ages=jumped)
        if not plan.changes_nothing and not self._apply(plan, state.watermark):
            return NOW
        newest = listing.rows[-1].message_id if listing.rows else self._last_id
        pause_s = self._pause(plan, grew=newest > self._last_id, newest=newest)
        if plan.open_gaps and pause_s > 0:
            took_s = self._clock.monotonic() - began_s
            return max(pause_s, SHARE_OF_TIME_MAX * took_s)
        return pause_s

    def _plan(
        self,
        state: IntakeState,
        listing: Listing,
        beyond: Sequence[int],
        probes: Mapping[int, Probe],
        rule: StepRule | None,
        *,
        restart_ages: bool,
    ) -> ScanPlan:
        return plan_scan(
            state.watermark,
            listing.rows,
            state.ledger,
            started_at=listing.started_at,
            claim_max=self._claim,
            policy=replace(self._rules.scan, evidence=self._evidence.use, step_rule=rule),
            ids_beyond=beyond,
            probes=probes,
            restart_ages=restart_ages,
        )

    def _has_jumped(self, listing: Listing, asked_at_s: float) -> bool:
        jump = self._time.jump(listing.started_at, asked_at_s=asked_at_s)
        if jump is not None:
            text = f"by {jump.total_seconds():+.1f} s: the ages of open gaps begin anew"
            self._telemetry.alert("mailbox-clock-jumped", text)
        return jump is not None

    def _look_beyond(self, state: IntakeState, listing: Listing) -> Sequence[int]:
        """Ids behind a full listing, now and then, while a gap is open."""
        gap_open = any(gap.decision is GapDecision.OPEN for gap in state.ledger)
        due = self._clock.monotonic() - self._beyond_at_s >= LOOK_BEYOND_EVERY_S
        if not gap_open or not due or len(listing.rows) < self._claim:
            return ()
        self._beyond_at_s = self._clock.monotonic()
        last = listing.rows[-1].message_id
        return self._mailbox.ids_between(last + 1, ID_MAX, limit=SIGHT_IDS - len(listing.rows))

    def _step_rule(self, state: IntakeState, ids: Sequence[int]) -> StepRule | None:
        """The declared rule while it holds; one row off the step ends it for good."""
        rule = None if state.step_rule_off else self._rules.scan.step_rule
        off = None if rule is None else next(filter(rule.is_off, ids), None)
        if off is None:
            return rule
        why = f"mailbox row {off} is off the declared id step: the rule is off from now on"
        self._gaps.turn_step_rule_off(self._fence, why, now=self._clock.now())
        self._telemetry.alert("id-step-disproved", why)
        return None

    def _wait_for_operator(self, why: str) -> PauseS:
        now_s = self._clock.monotonic()
        if now_s - self._halt_told_at_s >= HALTED_TOLD_EVERY_S:
            self._halt_told_at_s = now_s
            text = f"intake is halted until `run.py gaps accept-restart`: {why}"
            self._telemetry.alert("intake-halted", text)
        # What the operator accepts is looked at anew.
        self._guard.suspect()
        return self._rules.poll_interval.total_seconds()

    def _apply(self, plan: ScanPlan, watermark: int) -> bool:
        """False when somebody else moved W since it was read: the plan is void."""
        with self._store.transaction(self._fence) as transaction:
            # The ledger above W changes only in scans, under this lock and fence: not read again.
            if transaction.watermark != watermark or transaction.halted is not None:
                return False
            inserted = transaction.apply(plan, now=self._clock.now(), origin=self._tracing.origin)
        if plan.watermark > watermark:
            self._wake_pump()
        self._telemetry.count("inbox_enqueued", inserted)
        for gap in plan.written:
            if gap.decision is GapDecision.PERMANENT:
                self._telemetry.count("gaps_permanent", gap.hi - gap.lo + 1)
                self._telemetry.log("gap.permanent", lo=gap.lo, hi=gap.hi, why=gap.why)
                self._tell_purged(gap, watermark)
        return True

    def _tell_purged(self, gap: Gap, watermark: int) -> None:
        """The first ids above W are gone, and so is every row before them."""
        if gap.lo <= watermark + 1 <= gap.hi and self._mailbox.oldest_id() > gap.hi:
            text = f"ids {gap.lo}-{gap.hi} were never read, and no older row is left"
            self._telemetry.alert("unread-rows-purged", text)

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
