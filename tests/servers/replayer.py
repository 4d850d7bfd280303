"""A leader that carries replay orders out, and can be told to kill itself at a point.

    replayer.py STORE POINT

Without a point (``-``) it carries out whatever waits.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from random import SystemRandom
from typing import Any

from fakes.line import CATALOGUE, decode_or_die
from fakes.mailbox import MemoryMailbox
from fakes.steps import Told
from msgexchange.clock import AnchoredClock
from msgexchange.flight.dynamic import UnknownFlight
from msgexchange.ids import Fence
from msgexchange.lifecycle.failure import FailurePolicy
from msgexchange.lifecycle.identity import IdentityPolicy
from msgexchange.pipeline.replay import ReplayOrders
from msgexchange.pipeline.rules import PumpRules
from msgexchange.store.engine import open_engine
from msgexchange.store.sql_store import SqlStore

POINTS = ("found", "begun", "locked", "folded", "written", "committed")
"""Before and after it is begun; under the locks, before and after the fold, before and after the
commit.
"""
NEVER = "-"


class Watched:
    """The replay store, which ends the process when it gets to the point."""

    def __init__(self, store: Any, point: str) -> None:
        self._store = store
        self._point = point
        self.reading = store.reading
        self.texts = store.texts
        self.interrupted = store.interrupted

    def reached(self, point: str) -> None:
        if point == self._point:
            os.kill(os.getpid(), signal.SIGKILL)

    def next_order(self) -> Any:
        order = self._store.next_order()
        if order is not None:
            self.reached("found")
        return order

    def begin(self, fence: Fence, order_id: str) -> None:
        self._store.begin(fence, order_id)
        self.reached("begun")

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Any]:
        with self._store.transaction(fence) as transaction:
            self.reached("locked")
            yield WatchedTransaction(transaction, self)
        self.reached("committed")


class WatchedTransaction:
    def __init__(self, transaction: Any, watched: Watched) -> None:
        self._transaction = transaction
        self._watched = watched

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def commit_replay(self, *given: Any, **named: Any) -> None:
        self._watched.reached("folded")
        self._transaction.commit_replay(*given, **named)
        self._watched.reached("written")


def main(url: str, point: str) -> int:
    draw = SystemRandom()
    store = SqlStore(open_engine(url), CATALOGUE, nonce=lambda: draw.getrandbits(60))
    fence = store.leader.take_lease(f"replayer-{os.getpid()}", timedelta(0))
    assert fence is not None
    watched: Any = Watched(store.replays, point)
    orders = ReplayOrders(
        store=watched,
        mailbox=MemoryMailbox(),
        clock=AnchoredClock(store.leader.database_now()),
        decode=decode_or_die,
        fence=fence,
        rules=PumpRules(
            identity=IdentityPolicy(),
            failure=FailurePolicy(),
            unknown_flight=UnknownFlight.SKIP,
            timezone="Asia/Shanghai",
            codec_version="1",
        ),
        telemetry=Told(),
        text_bytes_max=1 << 20,
        wake_delivery=lambda: None,
        log_snapshot=store.pump.log_snapshot,
    )
    while orders.carry_out_next():
        continue
    store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
