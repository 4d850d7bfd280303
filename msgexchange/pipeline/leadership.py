"""One step of leadership: try, renew, step down, give back (spec 6.1).

It runs on a thread of its own and never waits for the working actors.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, assert_never

from msgexchange.clock import Clock
from msgexchange.ids import Fence
from msgexchange.lifecycle.leadership import (
    GiveBack,
    Leading,
    LeasePolicy,
    Leave,
    Leaving,
    Renew,
    Resign,
    Resigned,
    Rest,
    Seen,
    State,
    Take,
    Waiting,
    Why,
    after_leaving,
    after_refusal,
    next_move,
)
from msgexchange.pipeline.step import NOW, PauseS, Step
from msgexchange.ports import (
    Delivery,
    LeaderStore,
    Record,
    RecordProducer,
    RetryNow,
    Telemetry,
    Unavailable,
)

EXIT_HUNG = 70
IDLE_WITHOUT_RIGHT_S = 1.0
STANDBY_FRESH_LEASES = 3


class Right:
    """Until when this process may begin work; extended by one thread, asked by all others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_s = float("-inf")

    def extend(self, until_s: float) -> None:
        self._until_s = until_s

    def revoke(self) -> None:
        self._until_s = float("-inf")

    @property
    def holds(self) -> bool:
        return self._clock.monotonic() < self._until_s


class Rightful:
    """A step that begins only while the right to lead holds."""

    def __init__(self, inner: Step, right: Right) -> None:
        self._inner = inner
        self._right = right

    def step(self) -> PauseS:
        return self._inner.step() if self._right.holds else IDLE_WITHOUT_RIGHT_S


class RightfulProducer:
    """A producer that sends only while the right to lead holds.

    A process that was frozen between its look at the fence and its window must not send what
    the next leader has overtaken meanwhile.
    """

    def __init__(self, inner: RecordProducer, right: Right) -> None:
        self._inner = inner
        self._right = right

    def send(self, records: Sequence[Record]) -> Sequence[Delivery]:
        """``RetryNow`` without the right: the next step begins once it is renewed."""
        if not self._right.holds:
            raise RetryNow("the right to lead has to be renewed first")
        return self._inner.send(records)

    def close(self) -> None:
        self._inner.close()


class Term(Protocol):
    """The working actors of one term of leadership; no call waits for a step of theirs."""

    def begin(self, fence: Fence, right: Right) -> None:
        """Start them."""
        ...

    def halt(self) -> None:
        """Tell them to end."""
        ...

    def ended(self) -> bool:
        """True once none of their threads runs, and before the first start."""
        ...

    def hung(self) -> str | None:
        """Who is longer in one step than the watchdog allows."""
        ...

    def fenced(self) -> bool:
        """A transaction met a higher fence."""
        ...

    def outage_s(self) -> float:
        """How long mailbox or broker have been out of reach; 0 while both are there."""
        ...


class Leadership:
    """Takes, keeps and gives back the lease for ``owner``; its state outlives a failed step.

    ``resigned`` is called once it has stopped in order.
    """

    def __init__(
        self,
        *,
        owner: str,
        store: LeaderStore,
        term: Term,
        clock: Clock,
        policy: LeasePolicy,
        telemetry: Telemetry,
        give_up: Callable[[int], None],
        resigned: Callable[[], None] = lambda: None,
    ) -> None:
        self.owner = owner
        self._store = store
        self._term = term
        self._clock = clock
        self._policy = policy
        self._telemetry = telemetry
        self._give_up = give_up
        self._on_resigned = resigned
        self._right = Right(clock)
        self._state: State = Waiting()
        self._stopping = False
        self._refused = False
        self._said: tuple[float, bool] | None = None

    @property
    def state(self) -> State:
        return self._state

    @property
    def fence(self) -> Fence | None:
        """The fence this process leads with."""
        state = self._state
        return state.fence if isinstance(state, Leading) else None

    @property
    def resigned(self) -> bool:
        return isinstance(self._state, Resigned)

    def stop(self) -> None:
        """Any thread: give leadership back in order and never take it again."""
        self._stopping = True

    def step(self) -> PauseS:
        seen = self._look()
        move = next_move(self._state, seen, self._policy)
        try:
            self._stand_by(seen)
            pause_s = self._do(move, seen)
        except (Unavailable, RetryNow) as failure:
            self._telemetry.log(
                "leadership.failed-call", move=type(move).__name__, reason=str(failure)
            )
            pause_s = self._after_failed_call(seen)
        if self.resigned:
            self._on_resigned()
        return pause_s

    def _look(self) -> Seen:
        outage_s = self._term.outage_s()
        return Seen(
            now_s=self._clock.monotonic(),
            stopping=self._stopping,
            fenced=self._term.fenced(),
            hung=self._term.hung() is not None,
            outage_s=outage_s,
            relief=self._relief(outage_s),
            actors_ended=self._term.ended(),
            able=outage_s <= 0,
        )

    def _do(self, move: object, seen: Seen) -> PauseS:
        match move:
            case Rest(pause_s):
                return pause_s
            case Take():
                return self._take(seen)
            case Renew():
                return self._renew(seen)
            case Leave(why):
                return self._leave(why)
            case GiveBack():
                return self._give_back(seen)
            case Resign():
                self._state = Resigned()
                self._store.leave(self.owner)
                return NOW
            case _:
                raise TypeError(f"unexpected move: {move!r}")

    def _after_failed_call(self, seen: Seen) -> PauseS:
        """The store did not answer: the state stays, but for when to try again."""
        again_s = self._clock.monotonic() + self._policy.look_every_s
        match self._state:
            case Waiting():
                self._state = Waiting(again_s)
            case Leading(fence, until_s, _):
                self._state = Leading(fence, until_s, again_s)
            case Leaving(fence, why, until_s, _):
                if seen.actors_ended:
                    # What could not be given back expires by itself.
                    self._state = after_leaving(why, seen, self._policy)
                else:
                    self._state = Leaving(fence, why, until_s, again_s)
            case Resigned():
                pass
            case state:
                assert_never(state)
        return NOW

    def _take(self, seen: Seen) -> PauseS:
        fence = self._store.take_lease(self.owner, self._policy.lease)
        if fence is None:
            self._refused = True
            self._state = after_refusal(seen, self._policy)
            return NOW
        # Counted from before the call: the database began to count no earlier.
        until_s = seen.now_s + self._policy.lease.total_seconds()
        self._state = Leading(fence, until_s, seen.now_s + self._policy.renew_every_s)
        self._right.extend(until_s - self._policy.margin_s)
        self._refused, self._said = False, None
        self._telemetry.log("leadership.taken", fence=fence, owner=self.owner)
        try:
            self._term.begin(fence, self._right)
        except BaseException:
            self._right.revoke()
            self._term.halt()
            self._state = Leaving(fence, Why.FAILED, until_s, until_s)
            raise
        self._store.leave(self.owner)
        return NOW

    def _renew(self, seen: Seen) -> PauseS:
        if not self._store.renew_lease(self.owner, self._policy.lease):
            return self._leave(Why.FENCED)
        until_s = seen.now_s + self._policy.lease.total_seconds()
        renew_at_s = seen.now_s + self._policy.renew_every_s
        match self._state:
            case Leading(fence):
                self._state = Leading(fence, until_s, renew_at_s)
                self._right.extend(until_s - self._policy.margin_s)
            case Leaving(fence, why):
                self._state = Leaving(fence, why, until_s, renew_at_s)
            case _:
                pass
        return NOW

    def _leave(self, why: Why) -> PauseS:
        self._right.revoke()
        self._term.halt()
        match self._state:
            case Leading(fence, until_s, renew_at_s) | Leaving(fence, _, until_s, renew_at_s):
                self._state = Leaving(fence, why, until_s, renew_at_s)
                self._tell(why, fence)
            case _:
                pass
        return NOW

    def _tell(self, why: Why, fence: Fence) -> None:
        text = f"fence {fence} given up: {why.value}"
        if why is Why.STOP:
            self._telemetry.log("leadership.ending", fence=fence, why=why.value)
            return
        if why is Why.HUNG:
            text = f"{text}: {self._term.hung()} is over the watchdog's bound"
            self._give_up(EXIT_HUNG)
        self._telemetry.alert("leadership-lost", text)

    def _give_back(self, seen: Seen) -> PauseS:
        assert isinstance(self._state, Leaving)
        self._store.give_back(self.owner)
        self._telemetry.log("leadership.given-back", fence=self._state.fence)
        self._state = after_leaving(self._state.why, seen, self._policy)
        return NOW

    def _stand_by(self, seen: Seen) -> None:
        """Say so at every change and once a lease: others count the row as fresh for three."""
        if not isinstance(self._state, Waiting) or not self._refused:
            return
        fresh_after_s = seen.now_s - self._policy.lease.total_seconds()
        if self._said is None or self._said[0] <= fresh_after_s or self._said[1] != seen.able:
            self._store.stand_by(self.owner, able=seen.able)
            self._said = (seen.now_s, seen.able)

    def _relief(self, outage_s: float) -> bool:
        if outage_s < self._policy.yield_after.total_seconds() or self.fence is None:
            return False
        try:
            view = self._store.look()
        except (Unavailable, RetryNow):
            return False
        fresh_after = view.now - STANDBY_FRESH_LEASES * self._policy.lease
        return any(
            standby.able and standby.owner != self.owner and standby.seen_at > fresh_after
            for standby in view.standbys
        )
