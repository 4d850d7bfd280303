"""How this process is, put together from its actors, breakers and probes."""

import threading
from collections.abc import Callable, Mapping

from msgexchange.app.runtime import Runtime
from msgexchange.clock import Clock
from msgexchange.config import Settings
from msgexchange.ids import Fence
from msgexchange.ports import Dependency, PortError
from msgexchange.web.health import (
    ActorHealth,
    BreakerHealth,
    DependencyHealth,
    Health,
    Leadership,
)

PROBE_AGE_MAX_S = 2.0
"""A probe's answer is kept this long: health calls must not load the dependencies."""

Probe = Callable[[], None]


class HealthWatch:
    """Probes dependencies at most every two seconds, and nudges who waits for one that is back."""

    def __init__(
        self,
        settings: Settings,
        runtime: Callable[[], Runtime | None],
        probes: Mapping[Dependency, Probe],
        *,
        clock: Clock,
        fence: Callable[[], Fence | None],
        kafka_bootstrap: str | None,
    ) -> None:
        self._watchdog_s = settings.supervisor.watchdog.total_seconds()
        self._autostart = settings.pipeline.autostart
        self._runtime = runtime
        self._probes = probes
        self._clock = clock
        self._fence = fence
        self._kafka_bootstrap = kafka_bootstrap
        self._lock = threading.Lock()
        self._probed_at_s = float("-inf")
        self._dependencies: dict[str, DependencyHealth] = {}

    def look(self) -> Health:
        """One look: live unless an actor is stuck or gone for good, ready when all can work."""
        runtime = self._runtime()
        dependencies = self._probe()
        actors = {} if runtime is None else self._actors(runtime)
        breakers = {} if runtime is None else _breakers(runtime)
        stuck = any(actor.state == "stuck" for actor in actors.values())
        gave_up = runtime is not None and runtime.ended.is_set()
        started = runtime is not None or not self._autostart
        working = all(actor.state in ("running", "paused") for actor in actors.values())
        healthy = all(one.ok for one in dependencies.values())
        fence = self._fence()
        return Health(
            live=not stuck and not gave_up,
            ready=started and working and healthy and not stuck and not gave_up,
            dependencies=dependencies,
            actors=actors,
            breakers=breakers,
            leadership=Leadership(role="none" if fence is None else "leader", fence=fence),
            kafka_bootstrap=self._kafka_bootstrap,
        )

    def _probe(self) -> Mapping[str, DependencyHealth]:
        with self._lock:
            if self._clock.monotonic() - self._probed_at_s < PROBE_AGE_MAX_S:
                return self._dependencies
            runtime = self._runtime()
            for dependency, probe in self._probes.items():
                try:
                    probe()
                except PortError as failure:
                    health = DependencyHealth(ok=False, reason=str(failure))
                else:
                    health = DependencyHealth(ok=True)
                    if runtime is not None:
                        runtime.nudge(dependency.value)
                self._dependencies[dependency.value] = health
            self._probed_at_s = self._clock.monotonic()
            return self._dependencies

    def _actors(self, runtime: Runtime) -> dict[str, ActorHealth]:
        paused = runtime.breakers()
        seen = {}
        for name, member in runtime.members.items():
            sign = member.pulse.sign()
            if sign.busy_s is not None and sign.busy_s > self._watchdog_s:
                state = "stuck"
            elif member.ref is None or not sign.alive:
                state = "restarting" if runtime.running else "stopped"
            else:
                state = "paused" if name in paused else "running"
            seen[name] = ActorHealth(
                state=state, restarts=max(sign.starts - 1, 0), step_s=sign.busy_s
            )
        return seen


def _breakers(runtime: Runtime) -> dict[str, BreakerHealth]:
    return {
        name: BreakerHealth(since=breaker.since, failures=breaker.failures, reason=breaker.reason)
        for name, breaker in runtime.breakers().items()
    }
