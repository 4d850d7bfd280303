"""The ledger of ranges against a model that keeps every id on its own (I1, I10).

Ids become visible in any order, vanish again, never come; scans see far or near, are lost before
their commit, come after long idle times, from clocks that were set. After every scan W, what was
taken in, and each id's age and decision are what the model says: none too early, none too late.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.gap import Gap, GapDecision, MailboxRow, ScanPolicy, StepRule
from msgexchange.lifecycle.watermark import ScanPlan, plan_scan

T0 = datetime(2026, 9, 3, 10, tzinfo=UTC)
DELAY_MS = 20_000
ID_LAST = 14
IDS = st.integers(1, ID_LAST)


@dataclass
class Model:
    """One missing id at a time: since when it is missed, and whether it was given up."""

    step: StepRule | None
    watermark: int = 0
    taken: list[int] = field(default_factory=list)
    missed_since: dict[int, int] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)

    def scan(
        self, visible: set[int], seen_to: int, at_ms: int, claim: int, *, restart_ages: bool
    ) -> None:
        for id_, since_ms in self.missed_since.items():
            if id_ not in self.given_up and (restart_ages or since_ms > at_ms):
                self.missed_since[id_] = at_ms
        for id_ in range(self.watermark + 1, seen_to + 1):
            if id_ in visible:
                self.missed_since.pop(id_, None)
                self.given_up.discard(id_)
            elif self.may_exist(id_):
                since_ms = self.missed_since.setdefault(id_, at_ms)
                if at_ms - since_ms > DELAY_MS:
                    self.given_up.add(id_)
        self._advance(sorted(id_ for id_ in visible if self.watermark < id_ <= seen_to)[:claim])

    def may_exist(self, id_: int) -> bool:
        return self.step is None or not self.step.is_off(id_)

    def _advance(self, rows: list[int]) -> None:
        for row in rows:
            between = range(self.watermark + 1, row)
            if any(self.may_exist(id_) and id_ not in self.given_up for id_ in between):
                return
            self.taken.append(row)
            self.watermark = row


class Intake(RuleBasedStateMachine):
    """A mailbox, the planner's W and ledger, and the model beside them."""

    step: StepRule | None = None

    @initialize()
    def begin(self) -> None:
        self.policy = ScanPolicy(
            commit_delay_max=timedelta(milliseconds=DELAY_MS),
            filled_kept_from=timedelta(),
            step_rule=self.step,
        )
        self.model = Model(self.step)
        self.visible: set[int] = set()
        self.watermark = 0
        self.taken: list[int] = []
        self.ledger: dict[tuple[int, int], Gap] = {}
        self.at_ms = 0

    @rule(ids=st.sets(IDS, max_size=6))
    def commit(self, ids: set[int]) -> None:
        """What comes below W is left to the late watch."""
        self.visible |= {i for i in ids if i > self.watermark and self.model.may_exist(i)}

    @rule(id_=IDS)
    def vanish(self, id_: int) -> None:
        """The owner purged a row that nobody had read."""
        if id_ > self.watermark:
            self.visible.discard(id_)

    @rule(ms=st.sampled_from([20, 1_000, 7_000, DELAY_MS, 500_000, -1_500]))
    def idle(self, ms: int) -> None:
        self.at_ms += ms

    @rule(
        claim=st.integers(1, 6),
        sees=st.sampled_from([0, 2, ID_LAST]),
        jumped=st.sampled_from([False] * 5 + [True]),
    )
    def scan(self, claim: int, sees: int, *, jumped: bool) -> None:
        above = sorted(id_ for id_ in self.visible if id_ > self.watermark)
        rows, beyond = above[:claim], above[claim : claim + sees]
        self._commit(self._plan(rows, beyond, claim, jumped=jumped))
        seen_to = [self.watermark, *rows, *beyond][-1] if above else self.model.watermark
        self.model.scan(self.visible, seen_to, self.at_ms, claim, restart_ages=jumped)

    @rule(claim=st.integers(1, 6))
    def die_before_the_commit(self, claim: int) -> None:
        """A plan that was never written leaves nothing behind, least of all an age."""
        above = sorted(id_ for id_ in self.visible if id_ > self.watermark)
        self._plan(above[:claim], above[claim:], claim, jumped=False)

    def _plan(self, rows: list[int], beyond: list[int], claim: int, *, jumped: bool) -> ScanPlan:
        return plan_scan(
            self.watermark,
            [MailboxRow(MailboxId(id_), 1) for id_ in rows],
            sorted(
                (gap for gap in self.ledger.values() if gap.hi > self.watermark),
                key=lambda gap: gap.lo,
            ),
            started_at=T0 + timedelta(milliseconds=self.at_ms),
            claim_max=claim,
            policy=self.policy,
            ids_beyond=beyond,
            restart_ages=jumped,
        )

    def _commit(self, plan: ScanPlan) -> None:
        for lo in plan.removed:
            del self.ledger[lo, 1]
        for gap in plan.written:
            assert (gap.lo, gap.step) not in self.ledger
            self.ledger[gap.lo, gap.step] = gap
        if plan.declared is not None:
            self.ledger[plan.declared.lo, plan.declared.step] = plan.declared
        self.taken += [row.message_id for row in plan.enqueue]
        self.watermark = plan.watermark

    @invariant()
    def w_and_what_was_taken_in_are_the_models(self) -> None:
        assert (self.watermark, self.taken) == (self.model.watermark, self.model.taken)

    @invariant()
    def each_id_has_its_own_age_and_decision(self) -> None:
        for id_ in range(1, ID_LAST + 1):
            holding = [g for g in self.ledger.values() if g.step == 1 and g.holds(id_)]
            assert len(holding) <= 1
            if not self.model.may_exist(id_):
                if id_ < self.watermark:
                    assert any(g.holds(id_) for g in self.ledger.values() if g.step > 1)
                continue
            gap = holding[0] if holding else None
            if gap is None or gap.decision is GapDecision.FILLED:
                assert id_ not in self.model.missed_since
                continue
            assert gap.first_seen == T0 + timedelta(milliseconds=self.model.missed_since[id_])
            given_up = gap.decision is GapDecision.PERMANENT
            assert given_up == (id_ in self.model.given_up)


@pytest.mark.parametrize("step", [None, StepRule(3, 1), StepRule(2, 2)])
def test_every_interleaving_ends_as_if_each_id_were_kept_alone(step: StepRule | None) -> None:
    machine: type[Intake] = type("Intake", (Intake,), {"step": step})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=80, stateful_step_count=40, deadline=None)
    )
