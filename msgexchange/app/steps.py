"""Steps wired to their adapters: what each actor does, built from settings."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from msgexchange import __version__
from msgexchange.app.adapters import Adapters
from msgexchange.app.asking import Asking, answer_policy
from msgexchange.app.duties import daily_jobs, leaves_by_plan, way_making
from msgexchange.clock import Clock
from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.config import Profile, Settings
from msgexchange.config.adapters import Delivery
from msgexchange.config.sections import LatePolicy
from msgexchange.flight.events import Target
from msgexchange.flight.messages import Decoded
from msgexchange.ids import Fence
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.failure import FailurePolicy
from msgexchange.lifecycle.gap import EvidenceUse, ScanPolicy, StepRule
from msgexchange.lifecycle.identity import IdentityPolicy
from msgexchange.lifecycle.late_watch import WatchPolicy
from msgexchange.pipeline.backfill import BackfillRules, BackfillSweep
from msgexchange.pipeline.delivery import DeliveryRules
from msgexchange.pipeline.dispatch import Dispatch
from msgexchange.pipeline.dispatch_once import DispatchOnce
from msgexchange.pipeline.flush_once import FlushOnce
from msgexchange.pipeline.gap_watch import GapWatch, WatchRules
from msgexchange.pipeline.ingest import Ingest, IngestRules
from msgexchange.pipeline.jobs import Job, Jobs
from msgexchange.pipeline.leadership import Right, RightfulProducer
from msgexchange.pipeline.process import Pump, PumpBounds
from msgexchange.pipeline.publish_flights import SchdFlush
from msgexchange.pipeline.publishing import Publisher, Publishing
from msgexchange.pipeline.replay import PumpWithOrders, ReplayOrders
from msgexchange.pipeline.rules import PumpRules
from msgexchange.pipeline.sending import SendingRules, SendRequests
from msgexchange.pipeline.step import Breakable, Step, Unhurried
from msgexchange.ports import (
    Dependency,
    RecordProducer,
    StoreInfo,
    Telemetry,
    TransactionProducer,
)
from msgexchange.ports.tracing import UNTRACED, Tracing


@dataclass(frozen=True, slots=True)
class Opened:
    """A step with what to call when an outage ends and when the step is let go."""

    step: Step
    close: Callable[[], None] = field(default=lambda: None)
    resumed: Callable[[timedelta], None] = field(default=lambda _pause: None)
    inner: Breakable | None = None
    """What pauses inside the step, behind breakers of its own."""


class Steps:
    """Opens the step of each actor by name."""

    def __init__(
        self,
        settings: Settings,
        adapters: Adapters,
        *,
        clock: Clock,
        telemetry: Telemetry,
        fence: Fence,
        right: Right,
        info: StoreInfo,
        ring: Callable[..., None],
        green_at_s: Callable[[Dependency], float],
        batch_max: int | None = None,
        tracing: Tracing = UNTRACED,
    ) -> None:
        """``batch_max``: messages of one commit at most, None for as many as is good."""
        self._settings = settings
        self._limits = limits_of(settings)
        self._batch_max = batch_max or PumpBounds().batch_max
        self._adapters = adapters
        self._clock = clock
        self._telemetry = telemetry
        self._tracing = tracing
        self._fence = fence
        self._right = right
        self._info = info
        self._ring = ring
        self._green_at_s = green_at_s
        self._flushes = 0
        pipeline = settings.pipeline
        self._backoff = Backoff(pipeline.backoff, pipeline.backoff_cap)

    def open(self, name: str) -> Opened:
        """The step of the actor called ``name``, with adapters of its own where it needs them."""
        once = self._settings.kafka.delivery is Delivery.EXACTLY_ONCE
        openers: dict[str, Callable[[], Opened]] = {
            "inbox": self._inbox,
            "pump": self._pump,
            "dispatcher-msg": self._dispatcher_once if once else self._dispatcher,
            "dispatcher-out": self._dispatcher_out,
            "schd-flush": self._flush_once if once else self._schd_flush,
            "jobs": self._jobs,
        }
        opened = openers[name]()
        if name != "dispatcher-msg":
            return opened
        unhurried = Unhurried(opened.step, self._clock, rest_max_s=DeliveryRules().rest_s)
        return replace(opened, step=unhurried)

    def decode(self, text: str) -> Decoded:
        """A raw text by the site's catalogue, limits and time zone."""
        return decode(text, self._adapters.catalogue, self._limits, self._settings.site.timezone)

    def _inbox(self) -> Opened:
        pipeline = self._settings.pipeline
        probe = self._adapters.open_probe()
        return Opened(
            Ingest(
                store=self._adapters.store.intake,
                gaps=self._adapters.store.gaps,
                mailbox=self._adapters.mailbox,
                probe=probe,
                clock=self._clock,
                fence=self._fence,
                rules=IngestRules(
                    poll_interval=pipeline.poll_interval,
                    poll_interval_busy=pipeline.poll_interval_busy,
                    claim_min=pipeline.claim_batch,
                    claim_max=max(pipeline.claim_batch, IngestRules().claim_max),
                    scan=self._scan_policy(),
                ),
                telemetry=self._telemetry,
                tracing=self._tracing,
                wake_pump=partial(self._ring, "pump"),
            ),
            close=(lambda: None) if probe is None else probe.close,
        )

    def _scan_policy(self) -> ScanPolicy:
        pipeline = self._settings.pipeline
        if pipeline.gap_evidence is EvidenceUse.EARLY:
            self._telemetry.log("gap-evidence.early", trades="safety for speed")
        return ScanPolicy(
            commit_delay_max=pipeline.max_commit_delay,
            commit_delay_proven_max=max(
                pipeline.max_commit_delay_proven, pipeline.max_commit_delay
            ),
            evidence=pipeline.gap_evidence,
            step_rule=step_rule(self._settings),
        )

    def _pump(self) -> Opened:
        settings = self._settings
        bounds = PumpBounds(
            batch_min=min(settings.pipeline.batch, self._batch_max),
            batch_max=self._batch_max,
            text_bytes_max=settings.codec.limits.text_max,
            idle_poll=settings.pipeline.poll_interval,
        )
        pump = Pump(
            store=self._adapters.store.pump,
            mailbox=self._adapters.mailbox,
            clock=self._clock,
            decode=self.decode,
            fence=self._fence,
            rules=pump_rules(settings, self._adapters.catalogue),
            bounds=bounds,
            telemetry=self._telemetry,
            tracing=self._tracing,
            marks=settings.profile is not Profile.SHADOW,
            wake_delivery=partial(self._ring, "dispatcher-msg"),
            way_making=way_making(settings, self._adapters.store),
            green_at_s=self._green_at_s,
        )
        store = self._adapters.store
        orders = ReplayOrders(
            store=store.replays,
            mailbox=self._adapters.mailbox,
            clock=self._clock,
            decode=self.decode,
            fence=self._fence,
            rules=pump_rules(settings, self._adapters.catalogue),
            telemetry=self._telemetry,
            text_bytes_max=settings.codec.limits.text_max,
            wake_delivery=partial(self._ring, "dispatcher-msg"),
            log_snapshot=store.pump.log_snapshot,
            way_making=way_making(settings, store),
            tracing=self._tracing,
        )
        return Opened(
            PumpWithOrders(pump, orders, self._clock), close=pump.close, resumed=pump.resumed
        )

    def _delivery_rules(self, window_max: int) -> DeliveryRules:
        return DeliveryRules(
            window_max=window_max,
            attempts_max=self._settings.pipeline.max_attempts,
            backoff=self._backoff,
        )

    def _producer(self, topic: str) -> RecordProducer:
        return RightfulProducer(self._adapters.open_producer(topic), self._right)

    def _publishing(
        self, target: Target, topic: str, check_fence: Callable[[Fence], None]
    ) -> tuple[Publishing, TransactionProducer]:
        producer = self._adapters.open_transactions(topic, target.value, self._info.store_id)
        publisher = Publisher(
            target=target, info=self._info, fence=self._fence, check_fence=check_fence
        )
        publishing = Publishing(
            publisher,
            producer=producer,
            positions=self._adapters.store.positions,
            clock=self._clock,
            telemetry=self._telemetry,
        )
        return publishing, producer

    def _dispatcher_once(self) -> Opened:
        store = self._adapters.store.outbox
        publishing, producer = self._publishing(
            Target.MSG, self._settings.kafka.msg_topic, store.check_fence
        )
        return Opened(
            DispatchOnce(
                target=Target.MSG,
                store=store,
                publishing=publishing,
                clock=self._clock,
                fence=self._fence,
                generation=self._info.generation,
                rules=self._delivery_rules(DeliveryRules().window_max),
                idle_poll=self._settings.pipeline.poll_interval,
                telemetry=self._telemetry,
                tracing=self._tracing,
            ),
            close=producer.close,
        )

    def _flush_once(self) -> Opened:
        store = self._adapters.store.schd
        publishing, producer = self._publishing(
            Target.SCHD, self._settings.kafka.schd_topic, store.check_fence
        )
        return Opened(
            FlushOnce(
                store=store,
                publishing=publishing,
                clock=self._clock,
                fence=self._fence,
                generation=self._info.generation,
                rules=self._delivery_rules(self._settings.schd.flush_limit),
                flush_period=self._settings.schd.flush_period,
                new_flush_id=self._flush_id,
                telemetry=self._telemetry,
                tracing=self._tracing,
            ),
            close=producer.close,
        )

    def _dispatcher(self) -> Opened:
        producer = self._producer(self._settings.kafka.msg_topic)
        return Opened(
            Dispatch(
                target=Target.MSG,
                store=self._adapters.store.outbox,
                producer=producer,
                clock=self._clock,
                fence=self._fence,
                generation=self._info.generation,
                rules=self._delivery_rules(DeliveryRules().window_max),
                idle_poll=self._settings.pipeline.poll_interval,
                telemetry=self._telemetry,
                tracing=self._tracing,
            ),
            close=producer.close,
        )

    def _dispatcher_out(self) -> Opened:
        mailbox = self._adapters.open_outbound()
        return Opened(
            SendRequests(
                store=self._adapters.store.outbound,
                mailbox=mailbox,
                clock=self._clock,
                fence=self._fence,
                right=self._right,
                rules=SendingRules(
                    rows_removed=self._settings.mailbox.outbound.rows_removed,
                    attempts_max=self._settings.pipeline.max_attempts,
                    backoff=self._backoff,
                    idle_poll=self._settings.pipeline.poll_interval,
                ),
                telemetry=self._telemetry,
            ),
            close=mailbox.close,
        )

    def _schd_flush(self) -> Opened:
        producer = self._producer(self._settings.kafka.schd_topic)
        return Opened(
            SchdFlush(
                store=self._adapters.store.schd,
                producer=producer,
                clock=self._clock,
                fence=self._fence,
                generation=self._info.generation,
                rules=self._delivery_rules(self._settings.schd.flush_limit),
                flush_period=self._settings.schd.flush_period,
                new_flush_id=self._flush_id,
                telemetry=self._telemetry,
                tracing=self._tracing,
            ),
            close=producer.close,
        )

    def _jobs(self) -> Opened:
        jobs = [Job("gap-watch", self._gap_watch())]
        asking = Asking(
            settings=self._settings,
            catalogue=self._adapters.catalogue,
            store=self._adapters.store,
            clock=self._clock,
            fence=self._fence,
            telemetry=self._telemetry,
            wake_sender=partial(self._ring, "dispatcher-out"),
        )
        close: Callable[[], None] = lambda: None  # noqa: E731
        if self._settings.profile is not Profile.SHADOW:
            jobs.append(Job("backfill-sweep", self._backfill_sweep()))
            outbound = self._adapters.open_outbound()
            close = outbound.close
            jobs += asking.jobs(outbound)
        jobs += daily_jobs(
            self._settings,
            self._adapters.store,
            clock=self._clock,
            fence=self._fence,
            telemetry=self._telemetry,
        )
        step = Jobs(jobs, self._clock, self._telemetry)
        return Opened(step, close=close, inner=step)

    def _backfill_sweep(self) -> BackfillSweep:
        return BackfillSweep(
            store=self._adapters.store.backfill,
            mailbox=self._adapters.mailbox,
            clock=self._clock,
            fence=self._fence,
            rules=BackfillRules(
                batch_max=self._settings.pipeline.backfill_batch,
                overdue_after=self._settings.pipeline.overdue_backfill,
            ),
            telemetry=self._telemetry,
        )

    def _gap_watch(self) -> GapWatch:
        pipeline = self._settings.pipeline
        return GapWatch(
            store=self._adapters.store.gaps,
            mailbox=self._adapters.mailbox,
            clock=self._clock,
            fence=self._fence,
            rules=WatchRules(
                dies=pipeline.late_policy is LatePolicy.DEAD,
                marks=self._settings.profile is not Profile.SHADOW,
                text_bytes_max=self._settings.codec.limits.text_max,
                watch=WatchPolicy(young_for=pipeline.late_watch),
            ),
            telemetry=self._telemetry,
        )

    def _flush_id(self) -> str:
        """One leader numbers its own flushes; a restored store goes through its fences again, in
        another generation.
        """
        self._flushes += 1
        return f"{self._info.generation}-{self._fence}-{self._flushes}"


def limits_of(settings: Settings) -> Limits:
    """``codec.limits.*`` as the codec takes them."""
    limits = settings.codec.limits
    return Limits(
        text_bytes_max=limits.text_max,
        depth_max=limits.depth_max,
        nodes_max=limits.nodes_max,
        flights_max=limits.flights_max,
        records_max=limits.records_max,
        items_max=limits.items_max,
        value_characters_max=limits.value_characters_max,
    )


def step_rule(settings: Settings) -> StepRule | None:
    """``mailbox.inbound.id-step`` and ``id-offset`` as intake takes them; None for every id."""
    inbound = settings.mailbox.inbound
    step = inbound.id_step or 1
    return StepRule(step, inbound.id_offset or 1) if step > 1 else None


def pump_rules(settings: Settings, catalogue: Catalogue) -> PumpRules:
    """How this site has messages decided."""
    return PumpRules(
        identity=IdentityPolicy(
            reuse_after=settings.identity.reuse_after,
            include_day_boundary=settings.identity.include_day_boundary,
        ),
        failure=FailurePolicy(
            attempts_max=settings.pipeline.max_attempts,
            backoff=Backoff(settings.pipeline.backoff, settings.pipeline.backoff_cap),
            head_deadline=settings.pipeline.head_deadline,
        ),
        unknown_flight=settings.flights.unknown,
        answers=answer_policy(settings),
        timezone=settings.site.timezone.key,
        plan_type=catalogue.envelope.plan,
        sweep=leaves_by_plan(settings),
        codec_version=f"{__version__}/{catalogue.fingerprint}",
    )
