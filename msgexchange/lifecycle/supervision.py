"""When a failed actor starts again, and when the process gives up (spec 6.1)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from msgexchange.lifecycle.backoff import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """``supervisor.max-restarts`` within ``supervisor.window``; back-off 1 to 16 s."""

    restarts_max: int = 10
    window: timedelta = timedelta(minutes=5)
    quiet_after: timedelta = timedelta(minutes=1)
    backoff: Backoff = field(default_factory=lambda: Backoff(cap=timedelta(seconds=16)))


@dataclass(frozen=True, slots=True)
class RestartIn:
    """Start a fresh actor after this long."""

    pause: timedelta


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Stop everything in order and exit 70, for the service manager to act."""

    failures: int


Verdict: TypeAlias = RestartIn | GiveUp


def after_failure(failed_at_s: Sequence[float], policy: RestartPolicy) -> Verdict:
    """What the latest failure leads to; ``failed_at_s`` are monotonic times, newest last.

    The back-off counts failures in a row: a quiet minute between two starts it anew.
    """
    newest = failed_at_s[-1]
    recent = [at for at in failed_at_s if newest - at <= policy.window.total_seconds()]
    if len(recent) > policy.restarts_max:
        return GiveUp(len(recent))
    in_a_row = 1
    for earlier, later in zip(reversed(failed_at_s[:-1]), reversed(failed_at_s), strict=False):
        if later - earlier >= policy.quiet_after.total_seconds():
            break
        in_a_row += 1
    return RestartIn(policy.backoff.after(in_a_row))
