"""One process among those that may lead: leadership, probes, the actors of a term (spec 6.1)."""

import threading
from collections.abc import Callable, Mapping
from functools import partial

import pykka

from msgexchange.actors.alarm import Alarm
from msgexchange.actors.pulse import Pulse
from msgexchange.actors.supervisor import Member, Role, SupervisorActor
from msgexchange.actors.turn import (
    LeadershipActor,
    ProbeActor,
    SiteCheckActor,
    TimeActor,
    TurnActor,
)
from msgexchange.app.runtime import GuardedStep, Runtime
from msgexchange.app.steps import Steps
from msgexchange.clock import AnchoredClock, Clock
from msgexchange.config import Settings
from msgexchange.ids import Fence
from msgexchange.lifecycle.breaker import Breaker
from msgexchange.lifecycle.leadership import LeasePolicy
from msgexchange.lifecycle.supervision import RestartPolicy
from msgexchange.pipeline.database_time import DatabaseTime
from msgexchange.pipeline.leadership import Leadership, Right
from msgexchange.pipeline.probe import DependencyProbe
from msgexchange.pipeline.step import Step
from msgexchange.ports import Dependency, LeaderStore, Telemetry

PROBES_END_S_MAX = 1.0
"""Probes only read; one that hangs is left to the end of the process."""
END_S_MAX = 10.0

OpenSteps = Callable[[Fence, Right], Steps]


class Candidacy:
    """Waits for leadership, leads, and stops in order; a ``Term`` of the leadership it drives.

    ``ended`` is set when the process should end with ``exit_status``. ``took_over`` is called on
    the leadership's thread whenever a term begins.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        owner: str,
        store: LeaderStore,
        open_steps: OpenSteps,
        calls: Mapping[Dependency, Callable[[], object]],
        site_check: Step,
        clock: AnchoredClock,
        telemetry: Telemetry,
        took_over: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._open_steps = open_steps
        self._clock = clock
        self._telemetry = telemetry
        self._took_over = took_over
        self.runtime: Runtime | None = None
        self.ended = threading.Event()
        self._resigned = threading.Event()
        self.exit_status = 0
        self.probes = {
            dependency: DependencyProbe(
                dependency,
                call,
                clock,
                waited_for=partial(self._is_waited_for, dependency),
                standing_by=lambda: self.leadership.fence is None,
                came_back=partial(self._nudge, dependency),
            )
            for dependency, call in calls.items()
        }
        self.leadership = Leadership(
            owner=owner,
            store=store,
            term=_Term(self),
            clock=clock,
            policy=LeasePolicy(lease=settings.supervisor.lease),
            telemetry=telemetry,
            give_up=self.give_up,
            resigned=self._resigned.set,
        )
        self.members = [
            *(
                _member(f"probe-{dependency.value}", ProbeActor, probe, clock)
                for dependency, probe in self.probes.items()
            ),
            _member("site-check", SiteCheckActor, site_check, clock),
            _member("database-time", TimeActor, self._database_time(store, clock), clock),
            _member("leadership", LeadershipActor, self.leadership, clock),
        ]
        self._alarm = Alarm(clock)
        self._supervisor: pykka.ActorRef[SupervisorActor] | None = None

    def start(self) -> None:
        """Begin to wait for the lease."""
        supervision = self._settings.supervisor
        self._supervisor = SupervisorActor.start(
            self.members,
            alarm=self._alarm,
            clock=self._clock,
            policy=RestartPolicy(restarts_max=supervision.max_restarts, window=supervision.window),
            watchdog=supervision.watchdog,
            telemetry=self._telemetry,
            give_up=self.give_up,
        )

    def stop(self) -> bool:
        """Give leadership back in order, bounded; False if something did not end in time.

        The lease is then left to expire.
        """
        if self._supervisor is None:
            return True
        self.leadership.stop()
        self.members[-1].ring()
        resigned = self._resigned.wait(self._settings.supervisor.shutdown_timeout.total_seconds())
        try:
            self._supervisor.proxy().stop_members(PROBES_END_S_MAX).get(timeout=END_S_MAX)
            self._supervisor.stop(block=True, timeout=END_S_MAX)
        except (pykka.ActorDeadError, pykka.Timeout) as failure:
            self._telemetry.alert("supervisor-did-not-stop", repr(failure))
        self._alarm.stop()
        self._supervisor = None
        return resigned

    def give_up(self, status: int) -> None:
        """Any thread: this process should stop in order and end with ``status``."""
        self.exit_status = status
        self.ended.set()

    def ring(self, *names: str) -> None:
        """Wake working actors; nobody is there to be woken in a standby."""
        if self.runtime is not None:
            self.runtime.ring(*names)

    def breakers(self) -> dict[str, Breaker]:
        """Open breakers by the actor that waits behind them."""
        return {} if self.runtime is None else self.runtime.breakers()

    def begin(self, fence: Fence, right: Right) -> None:
        """Start the working actors of a new term."""
        self.runtime = Runtime(
            self._settings,
            clock=self._clock,
            telemetry=self._telemetry,
            steps=self._open_steps(fence, right),
            right=right,
            give_up=self.give_up,
        )
        self.runtime.start()
        self._took_over()

    def _database_time(self, store: LeaderStore, clock: AnchoredClock) -> DatabaseTime:
        return DatabaseTime(
            store=store,
            clock=clock,
            telemetry=self._telemetry,
            fence=lambda: self.leadership.fence,
            shifted=lambda: self.ring("pump", "dispatcher-msg", "dispatcher-out", "schd-flush"),
        )

    def _is_waited_for(self, dependency: Dependency) -> bool:
        return any(b.dependency == dependency.value for b in self.breakers().values())

    def _nudge(self, dependency: Dependency) -> None:
        if self.runtime is not None:
            self.runtime.nudge(dependency.value)


class _Term:
    """The candidacy as its leadership sees it."""

    def __init__(self, candidacy: Candidacy) -> None:
        self._candidacy = candidacy

    def begin(self, fence: Fence, right: Right) -> None:
        self._candidacy.begin(fence, right)

    def halt(self) -> None:
        if self._candidacy.runtime is not None:
            self._candidacy.runtime.halt()

    def ended(self) -> bool:
        runtime = self._candidacy.runtime
        if runtime is None:
            return True
        if not runtime.ended():
            return False
        self._candidacy.runtime = None
        return True

    def hung(self) -> str | None:
        runtime = self._candidacy.runtime
        return None if runtime is None else runtime.hung()

    def fenced(self) -> bool:
        runtime = self._candidacy.runtime
        return runtime is not None and runtime.fenced

    def outage_s(self) -> float:
        probes = self._candidacy.probes
        return max(probes[d].down_for_s for d in (Dependency.MAILBOX, Dependency.BROKER))


def _member(name: str, actor: type[TurnActor], step: Step, clock: Clock) -> Member:
    return Member(Role(name, actor, lambda: GuardedStep(step, lambda: None)), Pulse(clock))
