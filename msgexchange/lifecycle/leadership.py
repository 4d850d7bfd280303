"""Who may lead, when the right is renewed, and when it is given up (spec 6.1, Leadership)."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from msgexchange.ids import Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePolicy:
    """``supervisor.lease`` and what follows from it; seconds of the monotonic clock."""

    lease: timedelta = timedelta(seconds=5)
    yield_after: timedelta = timedelta(minutes=5)
    """A leader without mailbox or broker for so long makes room for a standby that has both."""

    @property
    def renew_every_s(self) -> float:
        return self.lease.total_seconds() / 3

    @property
    def look_every_s(self) -> float:
        """How often a standby tries, and a renewal that failed is repeated."""
        return self.lease.total_seconds() / 10

    @property
    def margin_s(self) -> float:
        """So long before the right ends no work begins any more."""
        return self.lease.total_seconds() / 5

    @property
    def hold_off_s(self) -> float:
        """How long who made room leaves the lease to others; how seldom who lacks mailbox or
        broker tries for it.
        """
        return self.lease.total_seconds() * 2


class Why(StrEnum):
    """Why leadership ends."""

    STOP = "stop"
    FENCED = "fenced"
    LAPSED = "lapsed"
    HUNG = "hung"
    YIELD = "yield"
    FAILED = "failed"
    """The actors could not be started."""


ORDERLY = frozenset({Why.STOP, Why.YIELD})
"""The right is still ours until the actors have ended: it is renewed meanwhile."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A hot standby; tries for the lease from ``next_try_s`` on."""

    next_try_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Leading:
    """Holds the lease until ``until_s``, counted from the start of the call that renewed it."""

    fence: Fence
    until_s: float
    renew_at_s: float


@dataclass(frozen=True, slots=True)
class Leaving:
    """The actors were told to end; the lease goes back once they have."""

    fence: Fence
    why: Why
    until_s: float
    renew_at_s: float


@dataclass(frozen=True, slots=True)
class Resigned:
    """Leads no more and never will: this process stops."""


State: TypeAlias = Waiting | Leading | Leaving | Resigned


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known at ``now_s``.

    ``hung`` says which actor is over its bound. ``outage_s`` is the longest present outage of
    mailbox or broker; ``relief`` is true when a standby reaches both.
    """

    now_s: float
    stopping: bool = False
    fenced: bool = False
    hung: bool = False
    outage_s: float = 0.0
    relief: bool = False
    actors_ended: bool = True
    able: bool = True


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do for so long."""

    pause_s: float


@dataclass(frozen=True, slots=True)
class Take:
    """Try for the lease."""


@dataclass(frozen=True, slots=True)
class Renew:
    """Prolong the lease."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Tell the actors to end."""

    why: Why


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The actors have ended: free the lease for others."""


@dataclass(frozen=True, slots=True)
class Resign:
    """Wait no longer."""


Move: TypeAlias = Rest | Take | Renew | Leave | GiveBack | Resign

ENDING_LOOK_S = 0.02
"""Others wait for the lease while our actors end: look often."""


def next_move(state: State, seen: Seen, policy: LeasePolicy) -> Move:
    """The one thing to do now."""
    match state:
        case Waiting(next_try_s):
            return Resign() if seen.stopping else _when_due(Take(), next_try_s, seen, policy)
        case Leading(_, until_s, renew_at_s):
            why = reason_to_leave(until_s, seen, policy)
            return _when_due(Renew(), renew_at_s, seen, policy) if why is None else Leave(why)
        case Leaving() as leaving:
            return _while_ending(leaving, seen)
        case Resigned():
            return Rest(policy.look_every_s)


def _when_due(move: Move, due_s: float, seen: Seen, policy: LeasePolicy) -> Move:
    left_s = due_s - seen.now_s
    return Rest(min(left_s, policy.look_every_s)) if left_s > 0 else move


def _while_ending(leaving: Leaving, seen: Seen) -> Move:
    if seen.actors_ended:
        return GiveBack()
    if seen.hung and not seen.stopping and leaving.why is not Why.HUNG:
        return Leave(Why.HUNG)
    ours = (
        leaving.why in ORDERLY and not (seen.hung or seen.fenced) and seen.now_s < leaving.until_s
    )
    return Renew() if ours and seen.now_s >= leaving.renew_at_s else Rest(ENDING_LOOK_S)


def reason_to_leave(until_s: float, seen: Seen, policy: LeasePolicy) -> Why | None:
    """Why a leader must stop now; None while it may go on."""
    if seen.fenced:
        return Why.FENCED
    if seen.now_s >= until_s - policy.margin_s:
        return Why.LAPSED
    if seen.hung:
        return Why.HUNG
    if seen.stopping:
        return Why.STOP
    if seen.outage_s >= policy.yield_after.total_seconds() and seen.relief:
        return Why.YIELD
    return None


def after_refusal(seen: Seen, policy: LeasePolicy) -> Waiting:
    """Another owner holds the lease, or the store did not answer."""
    pause_s = policy.look_every_s if seen.able else policy.hold_off_s
    return Waiting(seen.now_s + pause_s)


def after_leaving(why: Why, seen: Seen, policy: LeasePolicy) -> Waiting | Resigned:
    """The lease is given back, or lost."""
    if seen.stopping or why is Why.STOP:
        return Resigned()
    pause_s = policy.hold_off_s if why is Why.YIELD else policy.look_every_s
    return Waiting(seen.now_s + pause_s)
