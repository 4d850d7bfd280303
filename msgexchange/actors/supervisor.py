"""Starts, watches and restarts the others; stops them in order (spec 6.1)."""

import faulthandler
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType

import pykka

from msgexchange.actors.alarm import Alarm
from msgexchange.actors.messages import Failed, Inspect, Restart
from msgexchange.actors.pulse import Pulse
from msgexchange.actors.turn import Bell, OpenStep, Post, TurnActor
from msgexchange.clock import Clock
from msgexchange.lifecycle.supervision import GiveUp, RestartIn, RestartPolicy, after_failure
from msgexchange.ports import Fenced, Telemetry

INSPECT_EVERY_S = 1.0
THREAD_END_POLL_S = 0.1
EXIT_RESTART_ME = 70
"""The exit status that asks the service manager for a fresh process."""


@dataclass(frozen=True, slots=True)
class Role:
    """One actor to keep alive: its class, its name, and how its step is opened."""

    name: str
    actor: type[TurnActor]
    open_step: Callable[[], OpenStep]


@dataclass(slots=True)
class Member:
    """A role with its running actor and the history of its failures."""

    role: Role
    pulse: Pulse
    rung: threading.Event = field(default_factory=threading.Event)
    ref: pykka.ActorRef[TurnActor] | None = None
    failed_at_s: list[float] = field(default_factory=list)
    overdue_told: bool = False

    def ring(self) -> None:
        """Wake the actor; nothing happens while it is down."""
        ref = self.ref
        if ref is not None:
            Bell(ref, self.rung).ring()


class SupervisorActor(pykka.ThreadingActor):
    """Keeps its members running; gives up by calling ``give_up`` with the exit status.

    ``fenced`` is called when a member met a higher fence: nothing starts again then, and whoever
    decides on leadership stops the others.
    """

    use_daemon_thread = True

    def __init__(
        self,
        members: Sequence[Member],
        *,
        alarm: Alarm,
        clock: Clock,
        policy: RestartPolicy,
        watchdog: timedelta,
        telemetry: Telemetry,
        give_up: Callable[[int], None],
        fenced: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._members = members
        self._alarm = alarm
        self._clock = clock
        self._policy = policy
        self._watchdog_s = watchdog.total_seconds()
        self._telemetry = telemetry
        self._give_up = give_up
        self._fenced = fenced
        self._stopping = False

    def on_start(self) -> None:
        threading.current_thread().name = "supervisor"
        try:
            for member in self._members:
                # An increase is seen only in a series that was there before.
                self._telemetry.count("actor_restarts", 0, actor=member.role.name)
                self._start(member)
        except Exception as failure:
            self._end_process(failure)
            raise
        self._later(INSPECT_EVERY_S, Inspect())

    def on_failure(
        self,
        _exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._end_process(exception_value)

    def _end_process(self, failure: BaseException | None) -> None:
        """Nobody restarts the supervisor: the service manager has to."""
        self._stopping = True
        self._telemetry.alert("supervisor-failed", repr(failure))
        self._give_up(EXIT_RESTART_ME)

    def on_receive(self, message: object) -> None:
        if self._stopping:
            return
        match message:
            case Failed(name, failure):
                self._failed(self._member(name), failure)
            case Restart(name):
                self._restart(self._member(name))
            case Inspect():
                self._inspect()
                self._later(INSPECT_EVERY_S, Inspect())
            case _:
                raise TypeError(f"unexpected message: {message!r}")

    def stop_members(self, timeout_s: float) -> bool:
        """Stop all in reverse order of start; False if one did not end in time."""
        self._stopping = True
        # Whoever is stopped for being stuck is told and dumped before nobody looks any more.
        self._inspect()
        ended = True
        deadline_s = self._clock.monotonic() + timeout_s
        for member in reversed(self._members):
            left_s = max(deadline_s - self._clock.monotonic(), 0.1)
            ended = self._stop_member(member, left_s) and ended
        return ended

    def _stop_member(self, member: Member, timeout_s: float) -> bool:
        if member.ref is None:
            return True
        try:
            member.ref.stop(block=True, timeout=timeout_s)
        except pykka.Timeout:
            self._telemetry.alert("actor-did-not-stop", member.role.name)
            return False
        return True

    def _start(self, member: Member) -> None:
        post = Post(
            name=member.role.name,
            open_step=member.role.open_step,
            alarm=self._alarm,
            pulse=member.pulse,
            rung=member.rung,
            report_failure=lambda failed: _tell(self.actor_ref, failed),
        )
        member.rung.clear()
        member.ref = member.role.actor.start(post)

    def _failed(self, member: Member, failure: BaseException) -> None:
        member.ref = None
        if isinstance(failure, Fenced):
            self._telemetry.alert("fenced", str(failure))
            self._stopping = True
            self._fenced()
            return
        member.failed_at_s.append(self._clock.monotonic())
        # More of them say no more about the next verdict.
        del member.failed_at_s[: -self._policy.restarts_max - 1]
        verdict = after_failure(member.failed_at_s, self._policy)
        match verdict:
            case RestartIn(pause):
                member.pulse.restarts_in(pause.total_seconds())
                self._telemetry.count("actor_restarts", actor=member.role.name)
                self._telemetry.log(
                    "actor.failed",
                    actor=member.role.name,
                    failure=repr(failure),
                    restart_in_s=pause.total_seconds(),
                )
                self._later(pause.total_seconds(), Restart(member.role.name))
            case GiveUp(failures):
                text = f"{member.role.name} failed {failures} times within {self._policy.window}"
                self._telemetry.alert("restarts-exhausted", text)
                self._stopping = True
                self._give_up(EXIT_RESTART_ME)

    def _restart(self, member: Member) -> None:
        if not member.pulse.thread_ended():
            self._later(THREAD_END_POLL_S, Restart(member.role.name))
            return
        self._start(member)

    def _inspect(self) -> None:
        for member in self._members:
            sign = member.pulse.sign()
            overdue = sign.overdue_s > self._watchdog_s
            if overdue and not member.overdue_told:
                what = "has not come to its step" if sign.busy_s is None else "is in one step"
                text = f"{member.role.name} {what} since {sign.overdue_s:.0f} s"
                self._telemetry.alert("watchdog", text)
                faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
            member.overdue_told = overdue

    def _member(self, name: str) -> Member:
        return next(member for member in self._members if member.role.name == name)

    def _later(self, seconds: float, message: object) -> None:
        self._alarm.after(seconds, lambda: _tell(self.actor_ref, message))


def _tell(ref: pykka.ActorRef[SupervisorActor], message: object) -> None:
    try:
        ref.tell(message)
    except pykka.ActorDeadError:
        return
