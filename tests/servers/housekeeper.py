"""A process that keeps a store's house, and can be told to kill itself at a point.

    housekeeper.py STORE FOLDER POINT

It does the job that ``POINT`` lies in and ends itself with SIGKILL the first time it gets there;
without a point (``-``) it does every job until nothing is left to do.
"""

import os
import signal
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from msgexchange.clock import AnchoredClock
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.flight.past import PastFlight, SweepPolicy
from msgexchange.history.files import HistoryFiles
from msgexchange.ids import Fence
from msgexchange.pipeline.archive import Archive, ArchiveRules
from msgexchange.pipeline.daily import Slices
from msgexchange.pipeline.history_sweep import HistorySweep, SweepRules
from msgexchange.pipeline.retention import Retention
from msgexchange.ports import Kept
from msgexchange.store.engine import open_engine
from msgexchange.store.sql_store import SqlStore

SWEEPING = ("writing", "written", "removed", "committed", "swept")
"""Before and after the write to history; before and after the commit that deletes; between two
slices.
"""
POINTS = (*SWEEPING, "archived", "retained")
"""The others: between two slices of the archive, and of retention."""
ALL = "-"
ZONE = "Asia/Shanghai"


class Reached:
    def __init__(self, point: str) -> None:
        self._point = point

    def __call__(self, point: str) -> None:
        if point == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


class WatchedHistory(HistoryFiles):
    def __init__(self, folder: Path, reached: Reached) -> None:
        super().__init__(folder)
        self._reached = reached

    def write(self, flights: Sequence[PastFlight]) -> None:
        self._reached("writing")
        super().write(flights)
        self._reached("written")


class WatchedSweep:
    def __init__(self, store: Any, reached: Reached) -> None:
        self._store = store
        self._reached = reached
        self.standing = store.standing

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Any]:
        with self._store.transaction(fence) as transaction:
            yield WatchedTransaction(transaction, self._reached)
        self._reached("committed")


class WatchedTransaction:
    def __init__(self, transaction: Any, reached: Reached) -> None:
        self._transaction = transaction
        self._reached = reached
        self.flights = transaction.flights

    def remove(self, last: Collection[Any], events: Sequence[Any], *, now: datetime) -> None:
        self._transaction.remove(last, events, now=now)
        self._reached("removed")


def run(slices: Slices, reached: Reached, point: str) -> None:
    while True:
        try:
            next(slices)
        except StopIteration:
            return
        reached(point)


def main(url: str, folder: str, point: str) -> int:
    store = SqlStore(open_engine(url), default_catalogue(), nonce=count(1).__next__)
    fence = store.leader.take_lease("housekeeper", timedelta(0))
    assert fence is not None
    now = store.leader.database_now()
    clock = AnchoredClock(now)
    reached = Reached(point)
    policy = SweepPolicy(timezone=ZoneInfo(ZONE))
    sweep = HistorySweep(
        store=WatchedSweep(store.sweep, reached),
        history=WatchedHistory(Path(folder), reached),
        clock=clock,
        fence=fence,
        rules=SweepRules(policy=policy, timezone=ZONE, flights_max=3),
    )
    archive = Archive(
        store=store.archive,
        clock=clock,
        fence=fence,
        rules=ArchiveRules(after=timedelta(0), messages_max=5),
    )
    retention = Retention(
        Kept.CHANGES,
        keep_for=timedelta(days=1),
        store=store.retention,
        fence=fence,
        rows_max=2,
    )
    if point in {"archived", ALL}:
        run(archive.slices(now=now), reached, "archived")
    if point in {"retained", ALL}:
        run(retention.slices(now=now), reached, "retained")
    if point in {*SWEEPING, ALL}:
        run(sweep.slices(now=now), reached, "swept")
    store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
