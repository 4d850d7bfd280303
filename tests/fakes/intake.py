"""An intake over a real store and mailbox, one step at a time, on a clock that tests turn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from fakes.steps import Told
from msgexchange.clock import SystemClock
from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.gap import Gap, ScanPolicy
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.gap_watch import GapWatch, WatchRules
from msgexchange.pipeline.ingest import Ingest, IngestRules
from msgexchange.ports import GapProbe, Mailbox, Probed
from msgexchange.store.sql_store import SqlStore


@dataclass
class TurnedClock:
    """The host's clock, moved on by a test."""

    ahead: timedelta = timedelta()
    system: SystemClock = field(default_factory=SystemClock)

    def now(self) -> datetime:
        return self.system.now() + self.ahead

    def monotonic(self) -> float:
        return self.system.monotonic() + self.ahead.total_seconds()


@dataclass
class ScriptedProbe:
    """Answers as told; an exception is raised."""

    answer: Probed | Exception = Probed.EMPTY
    asked: list[tuple[int, int]] = field(default_factory=list)

    def probe(self, lo: int, hi: int) -> Probed:
        self.asked.append((lo, hi))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def lead(store: SqlStore) -> Fence:
    """A new fence, as a process that starts gets it."""
    fence = store.leader.take_lease("test", timedelta(0))
    assert fence is not None
    return fence


class Intake:
    """Scan and late watch of one process; ``restart`` makes them anew."""

    def __init__(
        self,
        store: SqlStore,
        mailbox: Mailbox,
        *,
        policy: ScanPolicy | None = None,
        probe: GapProbe | None = None,
        dies: bool = True,
        claim: int = 50,
    ) -> None:
        self.store = store
        self.mailbox = mailbox
        self.clock = TurnedClock()
        self.told = Told()
        self._policy = policy or ScanPolicy(commit_delay_max=timedelta(seconds=1))
        self._probe = probe
        self._dies = dies
        self._claim = claim
        self.restart()

    def restart(self) -> None:
        fence = lead(self.store)
        self.scan = Ingest(
            store=self.store.intake,
            gaps=self.store.gaps,
            mailbox=self.mailbox,
            probe=self._probe,
            clock=self.clock,
            fence=fence,
            rules=IngestRules(scan=self._policy, claim_min=self._claim),
            telemetry=self.told,
            wake_pump=lambda: None,
        )
        self.watch = GapWatch(
            store=self.store.gaps,
            mailbox=self.mailbox,
            clock=self.clock,
            fence=fence,
            rules=WatchRules(dies=self._dies),
            telemetry=self.told,
        )

    @property
    def watermark(self) -> int:
        return self.store.intake.state().watermark

    @property
    def halted(self) -> str | None:
        return self.store.intake.state().halted

    def states(self) -> Mapping[MailboxId, MessageState]:
        return {fact.message_id: fact.state for fact in self.store.evidence.facts().messages}

    def ledger(self) -> list[Gap]:
        return sorted(self.store.reads.gaps(every=True, limit=10_000), key=lambda gap: gap.lo)

    def decisions(self) -> list[tuple[int, int, Any]]:
        return [(gap.lo, gap.hi, gap.decision.value) for gap in self.ledger()]

    def watch_later(self, ahead: timedelta) -> float:
        self.clock.ahead += ahead
        return self.watch.step()
