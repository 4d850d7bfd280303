"""A process that publishes a store's events exactly once, and can be told to die at a point.

    publisher.py STORE BOOTSTRAP TOPICS SIGNAL POINT NTH

``POINT`` is ``msg:committed`` and the like; the process sends itself ``SIGNAL`` when it gets there
for the ``NTH`` time. Without a point (``-``) it ends once nothing waits, with the point ``stays``
only when it is killed. Exit 3: fenced. First it
prints its fence, so that others may go on appending under it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

from confluent_kafka import Producer

from fakes.steps import Told
from msgexchange.broker.settings import ProducerBounds
from msgexchange.broker.transactions import KafkaTransactions
from msgexchange.clock import SystemClock
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.flight.events import Target
from msgexchange.ids import Fence
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.position import Position
from msgexchange.pipeline.delivery import DeliveryRules
from msgexchange.pipeline.dispatch_once import DispatchOnce
from msgexchange.pipeline.flush_once import FlushOnce
from msgexchange.pipeline.publishing import Publisher, Publishing
from msgexchange.ports import Acknowledged, Fenced, Record, Unavailable
from msgexchange.store.engine import open_engine
from msgexchange.store.sql_store import SqlStore

POSITIONS = "positions"
BOUNDS = ProducerBounds(message_timeout_s=5, round_trip_timeout_s=3)
RULES = DeliveryRules(window_max=7, attempts_max=2, backoff=Backoff(base=timedelta(milliseconds=1)))
FENCED = 3
STAYS = "stays"
POINTS = ("beginning", "produced", "offsets-sent", "committed", "marked")
"""Between every pair of effects: produce, send offsets, commit, mark."""

Reached = Callable[[str], None]


def nowhere(_point: str) -> None:
    return


def proven() -> None:
    return


class Watched(KafkaTransactions):
    """Says where in a transaction it is."""

    def __init__(self, *args: Any, reached: Reached, **given: Any) -> None:
        super().__init__(*args, **given)
        self._reached = reached

    def publish(self, records: Sequence[Record], position: Position) -> Sequence[Acknowledged]:
        self._reached("beginning")
        landed = super().publish(records, position)
        self._reached("committed")
        return landed

    def _send(
        self, session: Producer, records: Sequence[Record], deadline: float
    ) -> Sequence[Acknowledged]:
        landed = super()._send(session, records, deadline)
        self._reached("produced")
        return landed

    def _until_answered(self, call: Callable[[float], None], deadline: float) -> None:
        if getattr(call, "__name__", "") == "commit_transaction":
            self._reached("offsets-sent")
        super()._until_answered(call, deadline)


class WatchedPublishing(Publishing):
    def __init__(self, *args: Any, reached: Reached, **given: Any) -> None:
        super().__init__(*args, **given)
        self._reached = reached

    def marked(self) -> None:
        self._reached("marked")
        super().marked()


@dataclass
class Line:
    """Both targets of one store over one cluster, as the leader with ``fence`` runs them."""

    store: SqlStore
    bootstrap: str
    topics: str
    fence: Fence
    reached: Callable[[str, str], None] = lambda _target, _point: None
    prefix: str = "t-"
    rules: DeliveryRules = RULES
    told: Told = field(default_factory=Told)
    producers: list[KafkaTransactions] = field(default_factory=list)

    def topic(self, target: Target) -> str:
        return f"{self.topics}-{target.value.partition(':')[2]}"

    def group(self, target: Target) -> str:
        return f"{self.prefix}{self.store.leader.info().store_id}-{self.topics}-{target.value}"

    def publishing(self, target: Target, **given: Any) -> Publishing:
        def reached(point: str) -> None:
            self.reached(target.value.partition(":")[2], point)

        producer = Watched(
            self.bootstrap,
            self.topic(target),
            name=self.group(target),
            position_topic=POSITIONS,
            clock=SystemClock(),
            prove=proven,
            bounds=BOUNDS,
            reached=reached,
        )
        self.producers.append(producer)
        publisher = Publisher(
            target=target,
            info=self.store.leader.info(),
            fence=self.fence,
            check_fence=self.store.outbox.check_fence,
        )
        return WatchedPublishing(
            publisher,
            producer=producer,
            positions=self.store.positions,
            clock=SystemClock(),
            telemetry=self.told,
            reached=reached,
            **given,
        )

    def dispatch(self, **given: Any) -> DispatchOnce:
        return DispatchOnce(
            target=Target.MSG,
            store=self.store.outbox,
            publishing=self.publishing(Target.MSG, **given),
            clock=SystemClock(),
            fence=self.fence,
            generation=self.store.leader.info().generation,
            rules=self.rules,
            idle_poll=timedelta(seconds=1),
            telemetry=self.told,
        )

    def flush(self, **given: Any) -> FlushOnce:
        numbers = count(1)
        return FlushOnce(
            store=self.store.schd,
            publishing=self.publishing(Target.SCHD, **given),
            clock=SystemClock(),
            fence=self.fence,
            generation=self.store.leader.info().generation,
            rules=self.rules,
            flush_period=timedelta(seconds=1),
            new_flush_id=lambda: f"{self.fence}-{next(numbers)}",
            telemetry=self.told,
        )

    def close(self) -> None:
        for producer in self.producers:
            producer.close()


def open_store(file: str) -> SqlStore:
    return SqlStore(
        open_engine(f"sqlite:///{file}"),
        default_catalogue(),
        nonce=lambda: int.from_bytes(os.urandom(7)),
    )


def take_lead(store: SqlStore) -> Fence:
    fence = store.leader.take_lease("publisher", timedelta(0))
    assert fence is not None
    return fence


def run(line: Line, *, stays: bool) -> int:
    """Both targets in turn, until nothing waits unless it ``stays``."""
    dispatch, flush = line.dispatch(), line.flush()
    while True:
        try:
            is_idle = all([dispatch.step(), flush.step()])
        except Unavailable as outage:
            print(outage, flush=True)
            time.sleep(0.2)
        except Fenced:
            return FENCED
        else:
            if is_idle and not stays and line.store.reads.counts().oldest_pending_event_at is None:
                return 0


def main() -> int:
    file, bootstrap, topics, signal_name, point, nth = sys.argv[1:]
    store = open_store(file)
    left = int(nth)

    def reached(target: str, at: str) -> None:
        nonlocal left
        if f"{target}:{at}" == point:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.Signals[signal_name])

    line = Line(store, bootstrap, topics, take_lead(store), reached)
    print(line.fence, flush=True)
    return run(line, stays=point == STAYS)


if __name__ == "__main__":
    sys.exit(main())
