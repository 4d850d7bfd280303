"""Exactly once: what comes before the first window, and what each window leaves behind (spec 4.2).

Before anything is sent, and again after whatever left an outcome open, older producers are shut
out and the committed position says what is on the topic already. Only a window that is on the
topic *and* marked in the own store leaves nothing open.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.position import GoOn, Position, Published, Stop, judge
from msgexchange.ports import (
    Acknowledged,
    DeliveryStopped,
    Dependency,
    OutboxEntry,
    PositionStore,
    Record,
    StoreInfo,
    Superseded,
    Telemetry,
    TransactionProducer,
    Unavailable,
)

RECOMMIT_AFTER = timedelta(days=1)
"""Brokers forget an offset that nobody commits for a week."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Who publishes what: the target, the store, and the fence it must still hold."""

    target: Target
    info: StoreInfo
    fence: Fence
    check_fence: Callable[[Fence], None]


class Publishing:
    """The windows of one target, each published once or not at all."""

    def __init__(
        self,
        publisher: Publisher,
        *,
        producer: TransactionProducer,
        positions: PositionStore,
        clock: Clock,
        telemetry: Telemetry,
        recommit_after: timedelta = RECOMMIT_AFTER,
    ) -> None:
        self._is = publisher
        self._producer = producer
        self._positions = positions
        self._clock = clock
        self._telemetry = telemetry
        self._recommit_after_s = recommit_after.total_seconds()
        self._settled = False
        self._position: Position | None = None
        self._committed_at_s = float("-inf")

    def settle(self) -> None:
        """Make sure that nothing is open; ``DeliveryStopped`` where only a person can tell."""
        if self._settled:
            return
        self._check_fence()
        self._producer.begin()
        # Whoever took the lead meanwhile may have begun before us: it must not be shut out by a
        # process that goes on.
        self._check_fence()
        self._follow(self._producer.position())
        # Nobody knows how old it is: a line that stays idle over many restarts must keep it too.
        self._committed_at_s = float("-inf")
        self._settled = True

    def publish(
        self, window: Sequence[OutboxEntry], records: Sequence[Record], flush_id: str | None = None
    ) -> dict[EventId, Acknowledged]:
        """The whole window on the topic, with its position; ``marked`` must follow.

        After any failure, a refusal included, ``settle`` begins anew.
        """
        newest = max(window, key=lambda entry: entry.event_id)
        position = Position(
            store_id=self._is.info.store_id,
            generation=self._is.info.generation,
            event_id=newest.event_id,
            nonce=newest.nonce,
            flush_id=flush_id,
        )
        self._check_fence()
        landed = self._transact(records, position)
        return {entry.event_id: ack for entry, ack in zip(window, landed, strict=True)}

    def marked(self) -> None:
        """The own store has the window marked: nothing is open any more."""
        self._settled = True

    def keep_alive(self) -> None:
        """Commit the position again before the broker forgets it."""
        idle_s = self._clock.monotonic() - self._committed_at_s
        if self._position is None or idle_s < self._recommit_after_s:
            return
        self._check_fence()
        self._transact([], self._position)
        self._settled = True

    def _transact(self, records: Sequence[Record], position: Position) -> Sequence[Acknowledged]:
        self._settled = False
        try:
            landed = self._producer.publish(records, position)
        except Superseded as shut_out:
            # By the next leader: then this raises. By the broker, or by an old leader on its last
            # breath: then it is still our turn, after a new beginning.
            self._check_fence()
            raise Unavailable(Dependency.BROKER, str(shut_out)) from shut_out
        self._position = position
        self._committed_at_s = self._clock.monotonic()
        return landed

    def _follow(self, position: Position | None) -> None:
        target = self._is.target
        verdict = judge(
            position,
            store_id=self._is.info.store_id,
            generation=self._is.info.generation,
            mark=self._positions.mark(target),
            here=None if position is None else self._positions.known(target, position.event_id),
        )
        match verdict:
            case Stop(reason):
                raise DeliveryStopped(f"{target.value} stands still: {reason}")
            case Published(found):
                count = self._positions.settle(self._is.fence, target, found, now=self._clock.now())
                self._telemetry.log("delivery.settled", target=target.value, events=count)
            case GoOn(doubt):
                if doubt is not None:
                    self._telemetry.alert("delivery-position", f"{target.value}: {doubt}")
        self._position = position

    def _check_fence(self) -> None:
        self._is.check_fence(self._is.fence)
