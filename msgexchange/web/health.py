"""How the process is, as ``/health/live`` and ``/health/ready`` tell it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgexchange.web.answers import written_time


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyHealth:
    """Store, mailbox or broker: whether the last probe of it worked, since when, and why not."""

    ok: bool
    reason: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorHealth:
    """An actor: ``running``, ``paused``, ``restarting``, ``stuck`` or ``stopped``."""

    state: str
    restarts: int = 0
    step_s: float | None = None
    """How long the step that runs now has been running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerHealth:
    """An open breaker: somebody waits for this dependency."""

    dependency: str
    since: datetime
    failures: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """``leader``, ``standby`` or ``none``; the fence this process holds as leader, and its name."""

    role: str
    fence: int | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """One look at the process.

    ``live`` false asks for a restart, ``ready`` false for traffic to go elsewhere.
    ``kafka_bootstrap`` is the embedded broker's address.
    """

    live: bool
    ready: bool
    dependencies: Mapping[str, DependencyHealth] = field(default_factory=dict)
    actors: Mapping[str, ActorHealth] = field(default_factory=dict)
    breakers: Mapping[str, BreakerHealth] = field(default_factory=dict)
    leadership: Leadership
    kafka_bootstrap: str | None = None


def health_value(health: Health) -> dict[str, Any]:
    """The JSON body of both calls."""
    return {
        "live": health.live,
        "ready": health.ready,
        "dependencies": {
            name: {
                "ok": one.ok,
                "reason": one.reason,
                "since": None if one.since is None else written_time(one.since),
            }
            for name, one in health.dependencies.items()
        },
        "actors": {
            name: {"state": one.state, "restarts": one.restarts, "stepSeconds": one.step_s}
            for name, one in health.actors.items()
        },
        "breakers": {
            name: {
                "dependency": one.dependency,
                "since": written_time(one.since),
                "failures": one.failures,
                "reason": one.reason,
            }
            for name, one in health.breakers.items()
        },
        "leadership": {
            "role": health.leadership.role,
            "fence": health.leadership.fence,
            "owner": health.leadership.owner,
        },
        "kafka": {"bootstrap": health.kafka_bootstrap},
    }
