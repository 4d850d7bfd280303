"""Where the time of a message goes: Python, statements, round trips, commits (7.5)."""

import cProfile
import pstats
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from msgexchange.bench import workload
from msgexchange.bench.site import Line, Product, Sites
from msgexchange.bench.watching import CLOCK
from msgexchange.pipeline.step import NOW

FUNCTIONS_SHOWN = 25
STEPS = ("inbox", "pump", "dispatcher-msg", "schd-flush")


@dataclass(slots=True)
class Spent:
    """What one step cost for all messages together; ``waited_s`` for the own database."""

    step: str
    turns: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    waited_s: float = 0.0
    statements: int = 0
    begins: int = 0
    commits: int = 0

    @property
    def round_trips(self) -> int:
        """The driver sends BEGIN and COMMIT each on their own."""
        return self.statements + self.begins + self.commits


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function by the time spent in itself."""

    name: str
    calls: int
    own_s: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Per step, and the Python functions of the pump that take most; for so many messages."""

    messages: int
    steps: Sequence[Spent]
    functions: Sequence[Function] = field(default_factory=list)


def profile(product: Product, sites: Sites, *, messages: int, flights: int) -> Profile:
    """The steps one after the other on one thread; a second run finds the functions.

    The profiler makes Python slower, so that its run is not the one that is timed.
    """
    timed = _run(product, sites, messages, flights, None)
    profiler = cProfile.Profile()
    _run(product, sites, messages, flights, profiler)
    return Profile(messages, timed, _functions(profiler))


def _run(
    product: Product, sites: Sites, messages: int, flights: int, profiler: cProfile.Profile | None
) -> list[Spent]:
    with sites.site() as site, product.line(site) as line:
        steps = {name: line.step(name).step for name in STEPS}
        site.write([workload.plan(flights, seqn=1)])
        for step in steps.values():
            while step() <= NOW:
                pass
        site.write(workload.operations(messages, flights, first_seqn=2))
        return [_drive(line, name, profiler) for name in STEPS]


def _drive(line: Line, name: str, profiler: cProfile.Profile | None) -> Spent:
    """Turns of one step until it has nothing left to do."""
    spent = Spent(name)
    step = line.step(name).step
    profiled = profiler if name == "pump" else None
    with _counted(line.store.engine, spent):
        more = True
        while more:
            began_s, began_cpu_s = CLOCK.monotonic(), _cpu_s()
            if profiled:
                profiled.enable()
            more = step() <= NOW
            if profiled:
                profiled.disable()
            spent.turns += 1
            spent.wall_s += CLOCK.monotonic() - began_s
            spent.cpu_s += _cpu_s() - began_cpu_s
    return spent


@contextmanager
def _counted(engine: Engine, spent: Spent) -> Iterator[None]:
    """Count what goes to the own database while the block runs."""
    began_s = 0.0

    def before(*_details: Any) -> None:
        nonlocal began_s
        spent.statements += 1
        began_s = CLOCK.monotonic()

    def after(*_details: Any) -> None:
        spent.waited_s += CLOCK.monotonic() - began_s

    def begun(_connection: Any) -> None:
        spent.begins += 1

    def committed(_connection: Any) -> None:
        spent.commits += 1

    listeners = {
        "before_cursor_execute": before,
        "after_cursor_execute": after,
        "begin": begun,
        "commit": committed,
    }
    for name, listener in listeners.items():
        event.listen(engine, name, listener)
    try:
        yield
    finally:
        for name, listener in listeners.items():
            event.remove(engine, name, listener)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_utime + used.ru_stime


def _functions(profiler: cProfile.Profile) -> list[Function]:
    found: dict[tuple[str, int, str], Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    slowest = sorted(found.items(), key=lambda one: one[1][2], reverse=True)
    return [
        Function(_named(*place), calls, own_s)
        for place, (_, calls, own_s, _, _) in slowest[:FUNCTIONS_SHOWN]
    ]


def _named(file: str, line: int, function: str) -> str:
    parts = Path(file).parts[-2:]
    return function if file == "~" else f"{'/'.join(parts)}:{line} {function}"
