"""What a charged failure does to a message (spec 3.3)."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.states import InboxEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """``pipeline.max-attempts``, ``.backoff``, ``.backoff-cap``, ``.head-deadline``."""

    attempts_max: int = 5
    backoff: Backoff = field(default_factory=Backoff)
    head_deadline: timedelta = timedelta(minutes=10)


CRASHES_MAX = 5
"""A message that was being worked on when so many processes ended is dead (spec 3.3)."""


@dataclass(frozen=True, slots=True)
class Retry:
    """FAILED: the message keeps the head and runs again at ``next_attempt_at``."""

    attempts: int
    next_attempt_at: datetime


@dataclass(frozen=True, slots=True)
class Exhaust:
    """DEAD(EXHAUSTED), with the class of this failure as LAST_CAUSE."""

    attempts: int


Charge: TypeAlias = Retry | Exhaust


def charge(
    entry: InboxEntry, *, started_at: datetime, now: datetime, policy: FailurePolicy, hopeless: bool
) -> Charge:
    """One more charged failure of ``entry``.

    ``started_at`` is when its first attempt began; ``hopeless`` says that its kind has been
    exhausted by this software and catalogue before, so that one attempt is enough.
    """
    attempts = entry.attempts + 1
    overdue = attempts > 1 and now - started_at >= policy.head_deadline
    if hopeless or overdue or attempts >= policy.attempts_max:
        return Exhaust(attempts)
    return Retry(attempts, now + policy.backoff.after(attempts))


def charge_crash(
    entry: InboxEntry, *, crashes: int, now: datetime, policy: FailurePolicy
) -> Charge:
    """One more process ended while it worked on ``entry``, the ``crashes``-th; no other failure
    counts towards this limit.
    """
    attempts = entry.attempts + 1
    if crashes >= CRASHES_MAX:
        return Exhaust(attempts)
    return Retry(attempts, now + policy.backoff.after(attempts))
