"""What traces cost: a collector that takes them, and one that hangs, beside none at all (7.5)."""

import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgexchange.bench import sink
from msgexchange.bench.figures import Bar, Figure, Pair, figure_of_pairs
from msgexchange.bench.process import free_port, running
from msgexchange.bench.site import Product, Sites
from msgexchange.bench.sustained import BATCHED, seconds_through

BAR = Bar(must=0.95, aim=0.98, at_least=True)
TAKEN = "sustained operations, traces taken by a collector"
HUNG = "sustained operations, traces sent to a collector that hangs"
ARMS = 3
"""Sites a round: no traces, traces taken, traces sent into a black hole."""


def tracing(
    product: Product,
    sites: Sites,
    *,
    messages: int,
    flights: int,
    rounds: int,
    folder: Path,
    tell: Callable[[], None],
) -> Sequence[Figure]:
    """Two figures; ``tell`` is called ``ARMS`` times a round, ``folder`` takes the sink's log.

    Each round begins with another arm, so that what a machine does over time hits all alike.
    """
    taken: list[Pair] = []
    hung: list[Pair] = []
    with ExitStack() as stack:
        ends = [
            None,
            stack.enter_context(_answering(folder)),
            stack.enter_context(_black_hole()),
        ]
        for round_ in range(rounds):
            per_s = [0.0] * ARMS
            for turn in range(ARMS):
                arm = (round_ + turn) % ARMS
                with sites.site() as site:
                    took_s = seconds_through(
                        BATCHED, product, site, messages, flights, traces_to=ends[arm]
                    )
                per_s[arm] = messages / took_s
                tell()
            without, answered, ignored = per_s
            taken.append(Pair(answered, without))
            hung.append(Pair(ignored, without))
    floor = "the same without an exporter, in the same round"
    return [
        figure_of_pairs(
            name,
            "messages/s",
            pairs,
            BAR,
            {"value": f"{messages} operations on {flights} flights; {how}", "floor": floor},
        )
        for name, pairs, how in (
            (TAKEN, taken, "20 traces a second, taken at once by a process beside"),
            (HUNG, hung, "20 traces a second to a port that accepts and never answers"),
        )
    ]


@contextmanager
def _answering(folder: Path) -> Iterator[str]:
    """The address of a process that takes whatever is posted."""
    port = free_port()

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    # By its file: the package need not be installed, nor lie where this process was started.
    command = [sys.executable, "-P", sink.__file__, str(port)]
    with running(command, name="sink", log=folder / "sink.log", answers=listens):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _black_hole() -> Iterator[str]:
    """The address of a port where connections are made and nothing is ever read."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent:
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"
