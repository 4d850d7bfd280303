"""The working actors of one term of leadership: built, started, watched, stopped (spec 6.1)."""

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
from msgexchange.config import Profile, Settings
from msgexchange.lifecycle.breaker import Breaker
from msgexchange.lifecycle.supervision import RestartPolicy
from msgexchange.pipeline.leadership import Right, Rightful
from msgexchange.pipeline.step import Breakable, Guarded, Step
from msgexchange.ports import Telemetry

SENDER = "dispatcher-out"
"""Writes requests to the mailbox; not even there in a shadow run."""
STARTED_BOTTOM_UP: tuple[tuple[str, type[TurnActor]], ...] = (
    ("dispatcher-msg", DispatcherActor),
    (SENDER, DispatcherActor),
    ("schd-flush", SchdFlushActor),
    ("pump", PumpActor),
    ("inbox", InboxActor),
    ("jobs", JobActor),
)
"""Whoever is told of work starts before whoever tells; stopped in reverse."""
HEARTBEATS = ("pump", "dispatcher-msg", SENDER, "schd-flush")
"""Whoever hangs here takes leadership away from this process."""
END_S_MAX = 5.0
STOOD_STILL_S = 3.0
"""Longer than one look for signs of life takes, its calls to a database that is away included."""


@dataclass(frozen=True, slots=True)
class GuardedStep:
    """A guarded step and what it holds open."""

    step: Step
    close: Callable[[], None]


class Runtime:
    """Six stepping actors under one supervisor, which work while ``right`` holds.

    ``give_up`` is told the exit status when restarting does not help any more.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        telemetry: Telemetry,
        steps: Steps,
        right: Right,
        give_up: Callable[[int], None],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._steps = steps
        self._right = right
        self._give_up = give_up
        self._guards: dict[str, tuple[Breakable, ...]] = {}
        self._alarm: Alarm | None = None
        self._supervisor: pykka.ActorRef[SupervisorActor] | None = None
        self._halting = False
        self._halted: pykka.Future[bool] | None = None
        self._fenced = threading.Event()
        self._asked_at_s = clock.monotonic()
        self._lenient_until_s = float("-inf")
        self.members = {
            name: Member(Role(name, actor, self._opener(name)), Pulse(clock))
            for name, actor in STARTED_BOTTOM_UP
            if name != SENDER or settings.profile is not Profile.SHADOW
        }

    @property
    def fenced(self) -> bool:
        """True once an actor met a higher fence."""
        return self._fenced.is_set()

    def ring(self, *names: str) -> None:
        """Wake actors; nothing depends on it but speed."""
        for name in names:
            if name in self.members:
                self.members[name].ring()

    def breakers(self) -> dict[str, Breaker]:
        """Open breakers by the actor that waits behind them."""
        return {
            name: guard.breaker
            for name, guards in list(self._guards.items())
            for guard in guards
            if guard.breaker is not None
        }

    def nudge(self, dependency: str) -> None:
        """A probe of this dependency succeeded: whoever waits for it tries again at once."""
        for name, breaker in self.breakers().items():
            if breaker.dependency == dependency:
                for guard in self._guards[name]:
                    guard.nudge()
                self.ring(name)

    def hung(self) -> str | None:
        """Who of the pump and the deliveries has not shown a sign of life within the watchdog's
        bound: stuck in a step, or not come to the one that is due.

        A pause, behind a breaker too, ends when it was said to end. The leadership asks several
        times a second: if it did not, the whole process stood still, and all get the bound anew.
        """
        bound_s = self._settings.supervisor.watchdog.total_seconds()
        now_s = self._clock.monotonic()
        if now_s - self._asked_at_s > STOOD_STILL_S:
            self._lenient_until_s = now_s + bound_s
        self._asked_at_s = now_s
        if now_s < self._lenient_until_s:
            return None
        for name in HEARTBEATS:
            if name in self.members and self.members[name].pulse.sign().overdue_s > bound_s:
                return name
        return None

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
            fenced=self._fenced.set,
        )

    def halt(self) -> None:
        """Ask the supervisor to stop them top-down; returns at once."""
        if self._supervisor is None or self._halting:
            return
        self._halting = True
        timeout_s = self._settings.supervisor.shutdown_timeout.total_seconds()
        try:
            self._halted = self._supervisor.proxy().stop_members(timeout_s)
        except pykka.ActorDeadError:
            self._stop_orphans()

    def ended(self) -> bool:
        """True once all were stopped and none of their threads runs; what is left is closed."""
        if self._supervisor is None or self._alarm is None:
            return self._is_closed()
        if not self._halting or not self._is_answered():
            return False
        if not all(member.pulse.thread_ended() for member in self.members.values()):
            return False
        self._supervisor.stop(block=True, timeout=END_S_MAX)
        return self._is_closed()

    def _is_closed(self) -> bool:
        self._supervisor = None
        if self._alarm is not None:
            self._alarm.stop()
            self._alarm = None
        return True

    def _is_answered(self) -> bool:
        """True once the supervisor has told its members to end, or somebody has in its place."""
        if self._halted is None:
            return True
        try:
            self._halted.get(timeout=0)
        except pykka.Timeout:
            return False
        except pykka.ActorDeadError:
            self._stop_orphans()
            self._halted = None
        return True

    def _stop_orphans(self) -> None:
        """The supervisor is gone: each ends after the step it is in."""
        for member in reversed(self.members.values()):
            if member.ref is not None:
                member.ref.stop(block=False)

    def _opener(self, name: str) -> Callable[[], GuardedStep]:
        def open_step() -> GuardedStep:
            opened = self._steps.open(name)
            guard = Guarded(opened.step, self._clock, self._telemetry, opened.resumed)
            self._guards[name] = (guard,) if opened.inner is None else (guard, opened.inner)
            return GuardedStep(Rightful(guard, self._right), opened.close)

        return open_step
