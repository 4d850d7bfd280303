"""A lease in memory and a term without actors, for tests of who leads."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fakes.manual_clock import ManualClock
from msgexchange.ids import Fence
from msgexchange.pipeline.leadership import Right
from msgexchange.ports import Dependency, LeaseView, Standby, StoreInfo, Unavailable


@dataclass
class MemoryLease:
    """A ``LeaderStore``; ``down`` makes every call fail, ``on_call`` runs inside each."""

    clock: ManualClock
    owner: str | None = None
    until: datetime | None = None
    fence: int = 0
    standbys: dict[str, Standby] = field(default_factory=dict)
    down: bool = False
    shifts: list[timedelta] = field(default_factory=list)
    on_call: Callable[[], None] = lambda: None

    def info(self) -> StoreInfo:
        return StoreInfo("s", 1)

    def take_lease(self, owner: str, lease: timedelta) -> Fence | None:
        self._call()
        if self.owner is not None and self.until is not None and self.until > self.clock.now():
            return None
        self.owner, self.until = owner, self.clock.now() + lease
        self.fence += 1
        return Fence(self.fence)

    def renew_lease(self, owner: str, lease: timedelta) -> bool:
        self._call()
        if self.owner != owner:
            return False
        self.until = self.clock.now() + lease
        return True

    def give_back(self, owner: str) -> None:
        self._call()
        if self.owner == owner:
            self.owner = self.until = None

    def stand_by(self, owner: str, *, able: bool) -> None:
        self._call()
        self.standbys[owner] = Standby(owner, self.clock.now(), able)

    def leave(self, owner: str) -> None:
        self._call()
        self.standbys.pop(owner, None)

    def look(self) -> LeaseView:
        self._call()
        return LeaseView(
            fence=Fence(self.fence),
            owner=self.owner,
            until=self.until,
            now=self.clock.now(),
            standbys=list(self.standbys.values()),
        )

    def shift_deadlines(self, fence: Fence, by: timedelta) -> int:
        self._call()
        self.shifts.append(by)
        return 0

    def database_now(self) -> datetime:
        return self.clock.now()

    def _call(self) -> None:
        self.on_call()
        if self.down:
            raise Unavailable(Dependency.STORE, "refused")


@dataclass
class PaperTerm:
    """A ``Term``: what actors there would be, as a test wants it seen."""

    fence: Fence | None = None
    right: Right | None = None
    halted: bool = False
    busy: bool = False
    stuck: str | None = None
    overtaken: bool = False
    out_s: float = 0.0
    fails_to_begin: bool = False

    def begin(self, fence: Fence, right: Right) -> None:
        if self.fails_to_begin:
            raise OSError("no thread to be had")
        self.fence, self.right, self.halted, self.overtaken = fence, right, False, False

    def halt(self) -> None:
        self.halted = True

    def ended(self) -> bool:
        return self.fence is None or (self.halted and not self.busy)

    def hung(self) -> str | None:
        return self.stuck

    def fenced(self) -> bool:
        return self.overtaken

    def outage_s(self) -> float:
        return self.out_s
