"""A process among those that may lead, on real threads, with a fault before each thing it asks."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakes.faults import Faults, FaultyPort
from fakes.steps import Scripted, Told, pause
from msgexchange.app.candidacy import Candidacy
from msgexchange.app.steps import Opened
from msgexchange.clock import AnchoredClock
from msgexchange.config import Settings
from msgexchange.ids import Fence
from msgexchange.ports import Dependency, Unavailable
from msgexchange.store.sql_store import SqlStore
from servers.waiting import sleep

WAITS_FOR = {
    "pump": Dependency.STORE,
    "inbox": Dependency.MAILBOX,
    "dispatcher-msg": Dependency.BROKER,
}
"""Who waits for what here, all the time, so that the probes have somebody to ask for."""


def waits_for(dependency: Dependency) -> Callable[[], float]:
    def step() -> float:
        raise Unavailable(dependency, "somebody has to wait for it")

    return step


class IdleSteps:
    """Actors that do nothing, or wait for a dependency."""

    def open(self, name: str) -> Opened:
        waited = WAITS_FOR.get(name)
        return Opened(Scripted(pause(0.02) if waited is None else waits_for(waited)))


@dataclass
class Candidate:
    """Started; ``faults`` strike only calls made by the actor they are armed for."""

    settings: Settings
    store: SqlStore
    owner: str = "a"
    told: Told = field(default_factory=Told)
    faults: Faults = field(default_factory=Faults)
    gave_up: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = AnchoredClock(self.store.leader.database_now())
        asked: Any = FaultyPort(_Asked(), self.faults)
        steps: Any = IdleSteps()
        leader: Any = FaultyPort(self.store.leader, self.faults)
        self.candidacy = Candidacy(
            self.settings,
            owner=self.owner,
            store=leader,
            open_steps=lambda _fence, _right: steps,
            calls=dict.fromkeys(Dependency, asked.probe),
            site_check=_AskingStep(asked),
            clock=self.clock,
            telemetry=self.told,
            took_over=lambda: None,
        )
        self.candidacy.start()
        self.wait(lambda: self.fence is not None, "it leads")

    @property
    def fence(self) -> Fence | None:
        return self.candidacy.leadership.fence

    def starts(self) -> dict[str, int]:
        return {m.role.name: m.pulse.sign().starts for m in self.candidacy.members}

    def only(self, actor: str, act: Callable[[str], None]) -> Callable[[str], None]:
        """``act`` for calls of this actor; what others call is let through."""

        def strike(call: str) -> None:
            if threading.current_thread().name == actor:
                act(call)

        return strike

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = 20) -> None:
        deadline_s = self.clock.monotonic() + timeout_s
        while not condition():
            assert self.clock.monotonic() < deadline_s, (what, self.told, self.starts())
            sleep(0.005)

    def stop(self) -> bool:
        return self.candidacy.stop()


class _Asked:
    def probe(self) -> None:
        return


@dataclass
class _AskingStep:
    asked: Any

    def step(self) -> float:
        self.asked.probe()
        return 0.02
