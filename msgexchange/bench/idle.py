"""What a process takes that has nothing to do (7.5)."""

import resource
import threading
from collections.abc import Callable

from msgexchange.bench import workload
from msgexchange.bench.figures import Bar, Figure, figure_of_values
from msgexchange.bench.site import Product, Sites
from msgexchange.bench.watching import all_quiet, wait_through
from msgexchange.clock import SystemClock

SETTLED_S = 5.0
"""After the last message the inbox looks more often for a while."""
CLOCK = SystemClock()


def idle(
    product: Product,
    sites: Sites,
    *,
    flights: int,
    seconds: float,
    rounds: int,
    tell: Callable[[], None],
) -> Figure:
    """CPU of the whole process in percent of one core over so many seconds."""
    values = []
    pause = threading.Event()
    for _ in range(rounds):
        with sites.site() as site, product.running(site) as running:
            first, _ = site.write([workload.plan(flights, seqn=1)])
            running.look()
            wait_through(site, first)
            all_quiet(site)
            pause.wait(min(SETTLED_S, seconds))
            began_s, spent_s = CLOCK.monotonic(), _cpu_s()
            pause.wait(seconds)
            values.append(100 * (_cpu_s() - spent_s) / (CLOCK.monotonic() - began_s))
            tell()
    return figure_of_values(
        "idle",
        "% of a core",
        values,
        Bar(must=2, aim=1, at_least=False),
        {"value": f"CPU of the leading process over {seconds:g} s, {flights} flights known"},
    )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
