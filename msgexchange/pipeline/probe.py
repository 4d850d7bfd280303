"""A probe of one dependency, at a cadence of its own while somebody waits for it (spec 3.3)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from msgexchange.clock import Clock
from msgexchange.pipeline.step import PauseS
from msgexchange.ports import Dependency, PortError

WAITED_FOR_EVERY_S = 1.0
STANDING_BY_EVERY_S = 5.0
"""A standby must know whether it could do better than the leader."""
HEALTH_AGE_MAX_S = 2.0
"""An answer serves health for so long: many callers must not load the dependencies."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What the last probe found; ``since`` is when the present run of such answers began."""

    ok: bool
    since: datetime
    reason: str | None = None


class DependencyProbe:
    """Asks one dependency whether it is there; any thread may look, one at a time asks.

    ``waited_for`` says that an actor pauses behind a breaker for it, and ``came_back`` is called
    after each green answer then.
    """

    def __init__(
        self,
        dependency: Dependency,
        call: Callable[[], object],
        clock: Clock,
        *,
        waited_for: Callable[[], bool],
        standing_by: Callable[[], bool],
        came_back: Callable[[], None],
    ) -> None:
        self.dependency = dependency
        self._call = call
        self._clock = clock
        self._waited_for = waited_for
        self._standing_by = standing_by
        self._came_back = came_back
        self._asking = threading.Lock()
        self._answer: ProbeAnswer | None = None
        self._asked_at_s = float("-inf")
        self._down_since_s: float | None = None
        self.green_at_s = float("-inf")
        """When the dependency last answered a probe, by the monotonic clock."""

    @property
    def down_for_s(self) -> float:
        """How long every probe has failed; 0 while the last one was green."""
        since_s = self._down_since_s
        return 0.0 if since_s is None else self._clock.monotonic() - since_s

    def look(self) -> ProbeAnswer:
        """The last answer, asked anew when it is old; never waits behind another's question."""
        if self._clock.monotonic() - self._asked_at_s >= HEALTH_AGE_MAX_S:
            self._ask(wait=self._answer is None)
        answer = self._answer
        assert answer is not None
        return answer

    def step(self) -> PauseS:
        """Ask while an actor waits, while the last answer was red, and now and then in standby."""
        age_s = self._clock.monotonic() - self._asked_at_s
        wanted = self._waited_for() or self._down_since_s is not None
        if wanted or (self._standing_by() and age_s >= STANDING_BY_EVERY_S):
            self._ask(wait=False)
        return WAITED_FOR_EVERY_S

    def _ask(self, *, wait: bool) -> None:
        if not self._asking.acquire(blocking=wait):
            return
        try:
            self._take(self._outcome())
        finally:
            self._asking.release()

    def _outcome(self) -> str | None:
        try:
            self._call()
        except PortError as failure:
            return str(failure)
        return None

    def _take(self, reason: str | None) -> None:
        ok = reason is None
        before = self._answer
        same = before is not None and before.ok == ok
        since = before.since if before is not None and same else self._clock.now()
        self._answer = ProbeAnswer(ok, since, reason)
        self._asked_at_s = self._clock.monotonic()
        if not ok:
            self._down_since_s = self._down_since_s or self._asked_at_s
            return
        self._down_since_s = None
        self.green_at_s = self._asked_at_s
        if self._waited_for():
            self._came_back()
