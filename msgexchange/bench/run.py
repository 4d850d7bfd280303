"""The whole of a measurement: which figures, in which order (7.5)."""

import os
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgexchange.bench.backlog import backlog
from msgexchange.bench.delay import RATES_PER_S, delays, plan_events
from msgexchange.bench.figures import Figure
from msgexchange.bench.flushing import flush
from msgexchange.bench.growth import growth
from msgexchange.bench.housekeeping import housekeeping
from msgexchange.bench.idle import idle
from msgexchange.bench.planning import Plans
from msgexchange.bench.site import Product, Sites
from msgexchange.bench.sizes import Size
from msgexchange.bench.sustained import BATCHED, SINGLE, Way, sustained
from msgexchange.bench.tracing import ARMS, tracing
from msgexchange.clock import SystemClock

FSYNCS = 50
LEFT_OUT = ("peers (Procrastinate, Dramatiq, Celery) with the same work",)
"""Figures of the specification's table that are not measured yet."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What is measured, where, and how much. ``folder``: for fsync and the logs of what runs
    beside.
    """

    product: Product
    sites: Sites
    size: Size
    folder: Path


Tell = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Part:
    """Figures that are taken together; ``steps``: how often it tells that it goes on."""

    steps: Callable[[Size], int]
    run: Callable[[Bench, Tell], Sequence[Figure]]


def _backlog(bench: Bench, tell: Tell) -> Sequence[Figure]:
    size = bench.size
    taking_in = backlog(
        bench.product,
        bench.sites,
        messages=size.backlog,
        few=size.backlog_few,
        rounds=size.backlog_rounds,
        tell=tell,
    )
    return [taking_in]


def _plans(bench: Bench, tell: Tell) -> Sequence[Figure]:
    plans = Plans(bench.product, bench.sites, flights=bench.size.plan_flights)
    for _ in range(bench.size.plan_rounds):
        plans.round(tell)
    return plans.figures()


def _plan_events(bench: Bench, tell: Tell) -> Sequence[Figure]:
    size = bench.size
    announced = plan_events(
        bench.product,
        bench.sites,
        flights=size.plan_flights,
        rounds=size.plan_rounds,
        tell=tell,
    )
    return [announced]


def _operations(way: Way, count: Callable[[Size], int]) -> Part:
    def run(bench: Bench, tell: Tell) -> Sequence[Figure]:
        size = bench.size
        done = sustained(
            way,
            bench.product,
            bench.sites,
            messages=count(size),
            flights=size.flights,
            rounds=size.rounds,
            tell=tell,
        )
        return [done]

    return Part(lambda size: 2 * size.rounds, run)


def _tracing(bench: Bench, tell: Tell) -> Sequence[Figure]:
    size = bench.size
    return tracing(
        bench.product,
        bench.sites,
        messages=size.batched,
        flights=size.flights,
        rounds=size.rounds,
        folder=bench.folder,
        tell=tell,
    )


def _delays(bench: Bench, tell: Tell) -> Sequence[Figure]:
    size = bench.size
    return delays(
        bench.product,
        bench.sites,
        flights=size.flights,
        seconds=size.delay_s,
        rounds=size.delay_rounds,
        tell=tell,
    )


def _growth(bench: Bench, tell: Tell) -> Sequence[Figure]:
    size = bench.size
    grown = growth(
        bench.product,
        bench.sites,
        grown=size.grown,
        messages=size.batched,
        flights=size.flights,
        rounds=size.grown_rounds,
        tell=tell,
    )
    return [grown]


def _flush(bench: Bench, tell: Tell) -> Sequence[Figure]:
    size = bench.size
    flushed = flush(
        bench.product,
        bench.sites,
        flights=size.flush_flights,
        backlog=size.flush_backlog,
        rounds=size.flush_rounds,
        tell=tell,
    )
    return [flushed]


def _housekeeping(bench: Bench, tell: Tell) -> Sequence[Figure]:
    size = bench.size
    kept = housekeeping(
        bench.product,
        bench.sites,
        flights=size.aged_flights,
        messages=size.aged_messages,
        paced=size.paced,
        rounds=size.paced_rounds,
        tell=tell,
    )
    return [kept]


def _idle(bench: Bench, tell: Tell) -> Sequence[Figure]:
    size = bench.size
    spent = idle(
        bench.product,
        bench.sites,
        flights=size.flights,
        seconds=size.idle_s,
        rounds=size.idle_rounds,
        tell=tell,
    )
    return [spent]


PARTS: Mapping[str, Part] = {
    # Before anything else, so that no memory is free already in which it could grow unseen.
    "backlog": Part(lambda size: 2 * size.backlog_rounds, _backlog),
    # Early, so that no earlier round's memory hides what the plan takes.
    "plan": Part(lambda size: 4 * size.plan_rounds, _plans),
    "plan-events": Part(lambda size: size.plan_rounds, _plan_events),
    "batched": _operations(BATCHED, lambda size: size.batched),
    "single": _operations(SINGLE, lambda size: size.singles),
    "delay": Part(lambda size: len(RATES_PER_S) * size.delay_rounds, _delays),
    "growth": Part(lambda size: 2 * size.grown_rounds, _growth),
    "flush": Part(lambda size: 2 * size.flush_rounds, _flush),
    "jobs": Part(lambda size: 2 * size.paced_rounds, _housekeeping),
    "tracing": Part(lambda size: ARMS * size.rounds, _tracing),
    "idle": Part(lambda size: size.idle_rounds, _idle),
}


def steps(size: Size, only: Collection[str]) -> int:
    """How often ``measure`` tells that it goes on; ``only``: these parts, all if there are none."""
    return sum(part.steps(size) for name, part in PARTS.items() if not only or name in only)


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures, what they were taken on, and what of the table is not among them."""

    figures: Sequence[Figure]
    machine: Mapping[str, str]
    left_out: Sequence[str]


def measure(
    bench: Bench,
    *,
    said: Mapping[str, str],
    only: Collection[str],
    tell: Callable[[str], None],
) -> Measured:
    """The figures of these parts, or all; ``tell`` hears what goes on, ``steps`` times."""
    machine = {**said, **_machine(bench.folder)}
    figures = [
        figure
        for name, part in PARTS.items()
        if not only or name in only
        for figure in part.run(bench, partial(tell, name))
    ]
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
