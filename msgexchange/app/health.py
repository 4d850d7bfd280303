"""How this process is, put together from its actors, breakers and probes."""

from collections.abc import Callable, Iterable

from msgexchange.actors.supervisor import Member
from msgexchange.app.candidacy import Candidacy
from msgexchange.app.runtime import Runtime
from msgexchange.config import Settings
from msgexchange.pipeline.probe import DependencyProbe
from msgexchange.web.health import (
    ActorHealth,
    BreakerHealth,
    DependencyHealth,
    Health,
    Leadership,
)


class HealthWatch:
    """Looks at one process; a dependency is probed at most every two seconds for it."""

    def __init__(
        self,
        settings: Settings,
        candidacy: Candidacy,
        *,
        started: Callable[[], bool],
        kafka_bootstrap: str | None,
    ) -> None:
        self._watchdog_s = settings.supervisor.watchdog.total_seconds()
        self._autostart = settings.pipeline.autostart
        self._candidacy = candidacy
        self._started = started
        self._kafka_bootstrap = kafka_bootstrap

    def look(self) -> Health:
        """One look: live unless an actor is stuck or gone for good, ready when all can work.

        A standby has no working actors, and is ready: it answers reads and takes messages in.
        """
        candidacy = self._candidacy
        runtime = candidacy.runtime
        dependencies = {
            dependency.value: _dependency(probe) for dependency, probe in candidacy.probes.items()
        }
        working = {} if runtime is None else self._actors(runtime.members.values(), runtime)
        watching = self._actors(candidacy.members, runtime) if self._started() else {}
        actors = {**working, **watching}
        stuck = any(actor.state == "stuck" for actor in actors.values())
        gave_up = candidacy.ended.is_set()
        started = self._started() or not self._autostart
        all_work = all(actor.state in ("running", "paused") for actor in actors.values())
        healthy = all(one.ok for one in dependencies.values())
        return Health(
            live=not stuck and not gave_up,
            ready=started and all_work and healthy and not stuck and not gave_up,
            dependencies=dependencies,
            actors=actors,
            breakers=_breakers(candidacy),
            leadership=self._leadership(),
            kafka_bootstrap=self._kafka_bootstrap,
        )

    def _leadership(self) -> Leadership:
        leadership = self._candidacy.leadership
        if not self._started():
            return Leadership(role="none", owner=leadership.owner)
        fence = leadership.fence
        role = "standby" if fence is None else "leader"
        return Leadership(role=role, fence=fence, owner=leadership.owner)

    def _actors(self, members: Iterable[Member], runtime: Runtime | None) -> dict[str, ActorHealth]:
        paused = {} if runtime is None else runtime.breakers()
        seen = {}
        for member in members:
            name, sign = member.role.name, member.pulse.sign()
            if sign.overdue_s > self._watchdog_s:
                state = "stuck"
            elif member.ref is None or not sign.alive:
                state = "restarting"
            else:
                state = "paused" if name in paused else "running"
            seen[name] = ActorHealth(
                state=state, restarts=max(sign.starts - 1, 0), step_s=sign.busy_s
            )
        return seen


def _dependency(probe: DependencyProbe) -> DependencyHealth:
    answer = probe.look()
    return DependencyHealth(ok=answer.ok, reason=answer.reason, since=answer.since)


def _breakers(candidacy: Candidacy) -> dict[str, BreakerHealth]:
    return {
        name: BreakerHealth(
            dependency=breaker.dependency,
            since=breaker.since,
            failures=breaker.failures,
            reason=breaker.reason,
        )
        for name, breaker in candidacy.breakers().items()
    }
