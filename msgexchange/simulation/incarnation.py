"""One process of ours in a simulated world: the real steps over ports that fail."""

from collections.abc import Callable
from datetime import timedelta

from msgexchange.flight.dynamic import UnknownFlight
from msgexchange.flight.events import Target
from msgexchange.flight.messages import Decoded
from msgexchange.ids import Fence
from msgexchange.lifecycle.failure import FailurePolicy
from msgexchange.lifecycle.identity import IdentityPolicy
from msgexchange.lifecycle.watermark import ScanPolicy
from msgexchange.pipeline.backfill import BackfillRules, BackfillSweep
from msgexchange.pipeline.delivery import DeliveryRules
from msgexchange.pipeline.dispatch import Dispatch
from msgexchange.pipeline.ingest import Ingest, IngestRules
from msgexchange.pipeline.process import Pump, PumpBounds
from msgexchange.pipeline.publish_flights import SchdFlush
from msgexchange.pipeline.rules import PumpRules
from msgexchange.pipeline.step import Guarded
from msgexchange.ports import Dependency, Telemetry
from msgexchange.simulation.chance import Chance, exposed
from msgexchange.simulation.outside import ModelMailbox, ModelTopic
from msgexchange.store.sql_store import SqlStore

COMMIT_DELAY_MAX = timedelta(seconds=20)
RULES = DeliveryRules(window_max=4, attempts_max=3)


def _lead(store: SqlStore) -> Fence:
    """A new fence; the lease is free again at once, as the world decides who comes next."""
    fence = store.leader.take_lease("simulated", timedelta())
    assert fence is not None
    store.leader.give_back("simulated")
    return fence


class Incarnation:
    """The steps of one process under one fence, each with the time it is due."""

    def __init__(
        self,
        chance: Chance,
        store: SqlStore,
        mailbox: ModelMailbox,
        topics: tuple[ModelTopic, ModelTopic],
        *,
        decode: Callable[[str], Decoded],
        telemetry: Telemetry,
    ) -> None:
        self._chance = chance
        self._store = store
        self._telemetry = telemetry
        self.fence = _lead(store)
        self._mailbox = exposed(mailbox, "mailbox", Dependency.MAILBOX, chance)
        self._decode = decode
        pump = self._pump()
        msg, schd = topics
        steps = {
            "inbox": Guarded(self._ingest(), chance.clock, self._telemetry),
            "pump": Guarded(pump, chance.clock, self._telemetry, pump.resumed),
            "msg": Guarded(self._dispatch(msg), chance.clock, self._telemetry),
            "schd": Guarded(self._flush(schd), chance.clock, self._telemetry),
            "jobs": Guarded(self._sweep(), chance.clock, self._telemetry),
        }
        self.steps = steps
        self.due_s = dict.fromkeys(steps, chance.clock.elapsed_s)

    def step(self, name: str) -> None:
        pause_s = self.steps[name].step()
        self.due_s[name] = self._chance.clock.elapsed_s + pause_s

    def _ingest(self) -> Ingest:
        return Ingest(
            store=exposed(self._store.intake, "intake", Dependency.STORE, self._chance),
            gaps=exposed(self._store.gaps, "gaps", Dependency.STORE, self._chance),
            probe=None,
            mailbox=self._mailbox,
            clock=self._chance.clock,
            fence=self.fence,
            rules=IngestRules(
                claim_min=3, claim_max=8, scan=ScanPolicy(commit_delay_max=COMMIT_DELAY_MAX)
            ),
            telemetry=self._telemetry,
            wake_pump=lambda: None,
        )

    def _pump(self) -> Pump:
        return Pump(
            store=exposed(self._store.pump, "pump", Dependency.STORE, self._chance),
            mailbox=self._mailbox,
            clock=self._chance.clock,
            decode=self._decode,
            fence=self.fence,
            rules=PumpRules(
                identity=IdentityPolicy(),
                failure=FailurePolicy(attempts_max=3),
                unknown_flight=UnknownFlight.SKIP,
                timezone="Asia/Shanghai",
                plan_type="SCHD",
                codec_version="simulated",
            ),
            bounds=PumpBounds(batch_min=2, batch_max=6, flights_max=6),
            telemetry=self._telemetry,
            marks=True,
            wake_delivery=lambda: None,
        )

    def _dispatch(self, topic: ModelTopic) -> Dispatch:
        return Dispatch(
            target=Target.MSG,
            store=exposed(self._store.outbox, "outbox", Dependency.STORE, self._chance),
            producer=topic,
            clock=self._chance.clock,
            fence=self.fence,
            generation=1,
            rules=RULES,
            idle_poll=timedelta(seconds=1),
            telemetry=self._telemetry,
        )

    def _flush(self, topic: ModelTopic) -> SchdFlush:
        flushes = iter(range(1, 1_000_000))
        return SchdFlush(
            store=exposed(self._store.schd, "schd", Dependency.STORE, self._chance),
            producer=topic,
            clock=self._chance.clock,
            fence=self.fence,
            generation=1,
            rules=RULES,
            flush_period=timedelta(seconds=3),
            new_flush_id=lambda: f"{self.fence}-{next(flushes)}",
            telemetry=self._telemetry,
        )

    def _sweep(self) -> BackfillSweep:
        return BackfillSweep(
            store=exposed(self._store.backfill, "backfill", Dependency.STORE, self._chance),
            mailbox=self._mailbox,
            clock=self._chance.clock,
            fence=self.fence,
            rules=BackfillRules(batch_max=4),
            telemetry=self._telemetry,
        )
