"""The shell every stepping actor shares: wake, step, schedule the next step (spec 6.1)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

import pykka

from msgexchange.actors.alarm import Alarm
from msgexchange.actors.messages import Failed, Tick, Wake
from msgexchange.actors.pulse import Pulse
from msgexchange.pipeline.step import PauseS, Step


class OpenStep(Protocol):
    """A step together with what it holds open; built and closed on the actor's thread."""

    @property
    def step(self) -> Step: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Bell:
    """Wakes an actor at most once until it has answered, from any thread, dead or alive."""

    ref: "pykka.ActorRef[TurnActor]"
    rung: threading.Event

    def ring(self) -> None:
        if not self.rung.is_set():
            self.rung.set()
            try:
                self.ref.tell(Wake())
            except pykka.ActorDeadError:
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What an actor needs of its surroundings."""

    name: str
    open_step: Callable[[], OpenStep]
    alarm: Alarm
    pulse: Pulse
    rung: threading.Event
    report_failure: Callable[[Failed], None]


class StepAborted(Exception):
    """What left a step is no ``Exception``: to Pykka it would be the end of every actor."""


class TurnActor(pykka.ThreadingActor):
    """One step a turn; a step that raises ends the actor, and the supervisor starts a fresh one."""

    use_daemon_thread = True

    def __init__(self, post: Post) -> None:
        super().__init__()
        self._post = post
        self._turn = 0
        self._open: OpenStep | None = None

    def on_start(self) -> None:
        threading.current_thread().name = self._post.name
        self._post.pulse.started()
        self.actor_ref.tell(Wake())

    def on_receive(self, message: object) -> None:
        if isinstance(message, Tick) and message.number != self._turn:
            return
        self._post.rung.clear()
        self._post.pulse.turn_begins()
        pause_s = max(self._step(), 0.0)
        self._post.pulse.turn_ends(pause_s)
        self._turn += 1
        tick = Tick(self._turn)
        if pause_s <= 0:
            self.actor_ref.tell(tick)
        else:
            self._post.alarm.after(pause_s, lambda: _tell(self.actor_ref, tick))

    def _step(self) -> PauseS:
        try:
            if self._open is None:
                self._open = self._post.open_step()
            return self._open.step.step()
        except Exception:
            raise
        except BaseException as end:
            raise StepAborted(repr(end)) from end

    def on_stop(self) -> None:
        try:
            self._close()
        finally:
            self._post.pulse.stopped()

    def on_failure(
        self,
        _exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        try:
            self._close()
        finally:
            if exception_value is not None:
                self._post.report_failure(Failed(self._post.name, exception_value))

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _tell(ref: pykka.ActorRef[TurnActor], message: object) -> None:
    try:
        ref.tell(message)
    except pykka.ActorDeadError:
        return


class InboxActor(TurnActor):
    """Scans the mailbox (spec 3.2)."""


class PumpActor(TurnActor):
    """Works the head of the line (spec 3.3-3.6); never two in a process."""


class DispatcherActor(TurnActor):
    """Delivers one ordered target (spec 4.2)."""


class SchdFlushActor(TurnActor):
    """Merges and publishes flight states (spec 4.3)."""


class JobActor(TurnActor):
    """Maintenance in bounded slices (spec 5.4)."""


class LeadershipActor(TurnActor):
    """Takes, renews and gives back the lease (spec 6.1); never waits for the others."""


class TimeActor(TurnActor):
    """Follows the database's clock (spec 6.1, Time)."""


class SiteCheckActor(TurnActor):
    """Looks at topics and mailbox until both have been there once."""


class ProbeActor(TurnActor):
    """Probes one dependency while somebody waits for it (spec 3.3)."""
