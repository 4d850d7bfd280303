"""The whole of a measurement: which figures, of which size, in which order (7.5)."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgexchange.bench.backlog import backlog
from msgexchange.bench.figures import Figure
from msgexchange.bench.flushing import flush
from msgexchange.bench.housekeeping import STANDING, housekeeping
from msgexchange.bench.planning import Plans
from msgexchange.bench.site import Product, Sites
from msgexchange.bench.sustained import BATCHED, SINGLE, sustained
from msgexchange.bench.tracing import ARMS, tracing
from msgexchange.clock import SystemClock

FSYNCS = 50
LEFT_OUT = (
    "peers (Procrastinate, Dramatiq, Celery) with the same work",
    "the plan's 20,000 events acknowledged after its commit",
    "delay from row insert to acknowledgement at 50, 200, 500 messages/s",
    "growth: throughput with large tables",
    "idle",
)
"""Figures of the specification's table that are not measured yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured; ``flights`` take the operations, ``plan_flights`` make the plan."""

    rounds: int
    batched: int
    singles: int
    flights: int
    plan_flights: int
    plan_rounds: int
    flush_flights: int
    flush_backlog: int
    flush_rounds: int
    aged_flights: int
    aged_messages: int
    paced: int
    paced_rounds: int
    backlog: int
    backlog_few: int
    backlog_rounds: int

    @property
    def parts(self) -> int:
        """How often ``measure`` tells that a part is done."""
        pairs = self.flush_rounds + self.paced_rounds + self.backlog_rounds
        return (4 + ARMS) * self.rounds + 4 * self.plan_rounds + 2 * pairs


SHORT = Size(
    rounds=3,
    batched=5_000,
    singles=800,
    flights=1_000,
    plan_flights=10_000,
    plan_rounds=3,
    flush_flights=5_000,
    flush_backlog=100_000,
    flush_rounds=2,
    aged_flights=1_000,
    aged_messages=10_000,
    paced=500,
    paced_rounds=1,
    backlog=100_000,
    backlog_few=10_000,
    backlog_rounds=1,
)
FULL = Size(
    rounds=7,
    batched=20_000,
    singles=3_000,
    flights=1_000,
    plan_flights=10_000,
    plan_rounds=7,
    flush_flights=5_000,
    flush_backlog=100_000,
    flush_rounds=5,
    aged_flights=5_000,
    aged_messages=50_000,
    paced=3_000,
    paced_rounds=3,
    backlog=1_000_000,
    backlog_few=10_000,
    backlog_rounds=1,
)
TINY = Size(
    rounds=1,
    batched=60,
    singles=20,
    flights=20,
    plan_flights=40,
    plan_rounds=1,
    flush_flights=20,
    flush_backlog=100,
    flush_rounds=1,
    aged_flights=STANDING + 10,
    aged_messages=2 * STANDING,
    paced=20,
    paced_rounds=1,
    backlog=1_500,
    backlog_few=100,
    backlog_rounds=1,
)
"""Shows that everything is measured and checked; its figures mean nothing."""

SIZES: Mapping[str, Size] = {"short": SHORT, "full": FULL, "tiny": TINY}


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures, what they were taken on, and what of the table is not among them."""

    figures: Sequence[Figure]
    machine: Mapping[str, str]
    left_out: Sequence[str]


def measure(
    product: Product,
    sites: Sites,
    size: Size,
    *,
    said: Mapping[str, str],
    folder: Path,
    tell: Callable[[str], None],
) -> Measured:
    """Every figure; ``tell`` hears what goes on, ``size.parts`` times. ``folder``: for fsync and
    the logs of what runs beside.
    """
    machine = {**said, **_machine(folder)}
    # Before anything else, so that no memory is free already in which it could grow unseen.
    taking_in = backlog(
        product,
        sites,
        messages=size.backlog,
        few=size.backlog_few,
        rounds=size.backlog_rounds,
        tell=lambda: tell("backlog"),
    )
    plans = Plans(product, sites, flights=size.plan_flights)
    # Early, so that no earlier round's memory hides what the plan takes.
    for _ in range(size.plan_rounds):
        plans.round(lambda: tell("plan, dispatch, flights"))
    batched = sustained(
        BATCHED,
        product,
        sites,
        messages=size.batched,
        flights=size.flights,
        rounds=size.rounds,
        tell=lambda: tell("operations, batched"),
    )
    traced = tracing(
        product,
        sites,
        messages=size.batched,
        flights=size.flights,
        rounds=size.rounds,
        folder=folder,
        tell=lambda: tell("operations, traced"),
    )
    singles = sustained(
        SINGLE,
        product,
        sites,
        messages=size.singles,
        flights=size.flights,
        rounds=size.rounds,
        tell=lambda: tell("operations, batch 1"),
    )
    flushes = flush(
        product,
        sites,
        flights=size.flush_flights,
        backlog=size.flush_backlog,
        rounds=size.flush_rounds,
        tell=lambda: tell("schd flush"),
    )
    keeping = housekeeping(
        product,
        sites,
        flights=size.aged_flights,
        messages=size.aged_messages,
        paced=size.paced,
        rounds=size.paced_rounds,
        tell=lambda: tell("daily jobs"),
    )
    figures = [batched, *traced, singles, *plans.figures(), flushes, keeping, taking_in]
    return Measured(figures, machine, LEFT_OUT)


def _machine(folder: Path) -> Mapping[str, str]:
    return {
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "fsync": f"{_fsync_s(folder / 'fsync') * 1000:.2f} ms after 4 KiB, mean of {FSYNCS}",
    }


def _fsync_s(file: Path) -> float:
    clock = SystemClock()
    with file.open("wb") as sink:
        began_s = clock.monotonic()
        for _ in range(FSYNCS):
            sink.write(bytes(4096))
            sink.flush()
            os.fsync(sink.fileno())
        return (clock.monotonic() - began_s) / FSYNCS
