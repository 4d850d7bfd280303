"""The pipeline of this process: actors built, started, watched, stopped in order (spec 6.1)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import pykka

from msgexchange.actors.alarm import Alarm
from msgexchange.actors.pulse import Pulse
from msgexchange.actors.supervisor import Member, Role, SupervisorActor
from msgexchange.actors.turn import (
    DispatcherActor,
    InboxActor,
    JobActor,
    PumpActor,
    SchdFlushActor,
    TurnActor,
)
from msgexchange.app.steps import Steps
from msgexchange.clock import Clock
from msgexchange.config import Settings
from msgexchange.lifecycle.breaker import Breaker
from msgexchange.lifecycle.supervision import RestartPolicy
from msgexchange.pipeline.step import Guarded, Step
from msgexchange.ports import Telemetry

STARTED_BOTTOM_UP: tuple[tuple[str, type[TurnActor]], ...] = (
    ("dispatcher-msg", DispatcherActor),
    ("schd-flush", SchdFlushActor),
    ("pump", PumpActor),
    ("inbox", InboxActor),
    ("jobs", JobActor),
)
"""Whoever is told of work starts before whoever tells; stopped in reverse."""


@dataclass(frozen=True, slots=True)
class GuardedStep:
    """A guarded step and what it holds open."""

    step: Step
    close: Callable[[], None]


class Runtime:
    """Five stepping actors under one supervisor; ``exit_status`` is set when it gives up."""

    def __init__(
        self, settings: Settings, *, clock: Clock, telemetry: Telemetry, steps: Steps
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._steps = steps
        self._guards: dict[str, Guarded] = {}
        self._alarm: Alarm | None = None
        self._supervisor: pykka.ActorRef[SupervisorActor] | None = None
        self.ended = threading.Event()
        self.exit_status = 0
        self.members = {
            name: Member(Role(name, actor, self._opener(name)), Pulse(clock))
            for name, actor in STARTED_BOTTOM_UP
        }

    @property
    def running(self) -> bool:
        return self._supervisor is not None

    def ring(self, *names: str) -> None:
        """Wake actors; nothing depends on it but speed."""
        for name in names:
            self.members[name].ring()

    def breakers(self) -> dict[str, Breaker]:
        """Open breakers by the actor that waits behind them."""
        held = {name: guard.breaker for name, guard in self._guards.items()}
        return {name: breaker for name, breaker in held.items() if breaker is not None}

    def nudge(self, dependency: str) -> None:
        """A probe of this dependency succeeded: whoever waits for it tries again at once."""
        for name, breaker in self.breakers().items():
            if breaker.dependency == dependency:
                self._guards[name].nudge()
                self.ring(name)

    def start(self) -> None:
        """Start the supervisor, which starts the others bottom-up."""
        supervision = self._settings.supervisor
        self._alarm = Alarm(self._clock)
        self._supervisor = SupervisorActor.start(
            list(self.members.values()),
            alarm=self._alarm,
            clock=self._clock,
            policy=RestartPolicy(restarts_max=supervision.max_restarts, window=supervision.window),
            watchdog=supervision.watchdog,
            telemetry=self._telemetry,
            give_up=self._give_up,
        )

    def stop(self) -> bool:
        """Stop in order, bounded; False if something did not end in time."""
        if self._supervisor is None or self._alarm is None:
            return True
        timeout_s = self._settings.supervisor.shutdown_timeout.total_seconds()
        proxy = self._supervisor.proxy()
        try:
            ended = proxy.stop_members(timeout_s).get(timeout=timeout_s + 5)
        except pykka.Timeout:
            ended = False
        self._supervisor.stop(block=True, timeout=5)
        self._alarm.stop()
        self._supervisor = self._alarm = None
        return bool(ended)

    def _give_up(self, status: int) -> None:
        self.exit_status = status
        self.ended.set()

    def _opener(self, name: str) -> Callable[[], GuardedStep]:
        def open_step() -> GuardedStep:
            opened = self._steps.open(name)
            guard = Guarded(opened.step, self._clock, self._telemetry, opened.resumed)
            self._guards[name] = guard
            return GuardedStep(guard, opened.close)

        return open_step
