"""From the insert of a row to the acknowledgement of its event, at several rates (7.5)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import quantiles

import psycopg

from msgexchange.bench import workload
from msgexchange.bench.figures import Bar, Figure, figure_of_values
from msgexchange.bench.paced import Writer, writer
from msgexchange.bench.servers import dsn
from msgexchange.bench.site import Product, Site, Sites, require
from msgexchange.bench.watching import all_quiet, wait_through

RATES_PER_S = (50, 200, 500)
P50 = Bar(must=0.020, aim=0.020, at_least=False)
P99 = Bar(must=0.050, aim=0.030, at_least=False)
_ALL_ACKNOWLEDGED = (
    "SELECT count(*), extract(epoch FROM max(s.sent_at) - (SELECT max(finished_at) "
    "FROM proc_state))::float FROM msg_event_state s WHERE s.state = 'SENT'"
)
_ACKNOWLEDGED = (
    "SELECT e.msg_id, extract(epoch FROM s.sent_at)::float FROM msg_event e "
    "JOIN msg_event_state s ON s.event_id = e.event_id "
    "WHERE e.target = 'KAFKA:msg' AND e.msg_id >= %s"
)


def delays(
    product: Product,
    sites: Sites,
    *,
    flights: int,
    seconds: float,
    rounds: int,
    tell: Callable[[], None],
) -> list[Figure]:
    """Median and p99 at each rate, written for so many seconds; ``tell`` once a round and rate."""
    seen: dict[int, list[tuple[float, float]]] = {rate: [] for rate in RATES_PER_S}
    with writer() as other:
        for _ in range(rounds):
            with sites.site() as site:
                counts = {rate: max(round(rate * seconds), 2) for rate in RATES_PER_S}
                for rate, took_s in _round(product, site, other, flights, counts):
                    hundredths = quantiles(took_s, n=100)
                    seen[rate].append((hundredths[49], hundredths[98]))
                    tell()
    return [
        figure_of_values(
            f"row insert to acknowledgement at {rate}/s, {name}",
            "s",
            [found[place] for found in seen[rate]],
            bar,
            {
                "value": f"{round(rate * seconds)} rows, each in a transaction of its own by "
                "another process; until the broker has acknowledged the record on the msg topic, "
                "at-least-once"
            },
        )
        for rate in RATES_PER_S
        for place, (name, bar) in enumerate((("p50", P50), ("p99", P99)))
    ]


def _round(
    product: Product,
    site: Site,
    other: Writer,
    flights: int,
    counts: Mapping[int, int],
) -> Iterator[tuple[int, Sequence[float]]]:
    """Each rate with the seconds that its rows took."""
    first, _ = site.write([workload.plan(flights, seqn=1)])
    seqn = 2
    with product.running(site) as running:
        running.look()
        wait_through(site, first)
        all_quiet(site)
        for rate, count in counts.items():
            texts = workload.operations(count, flights, first_seqn=seqn)
            seqn += count
            inserted_at = other.write(site, texts, per_s=rate)
            wait_through(site, max(inserted_at))
            all_quiet(site)
            yield rate, _took_s(site, inserted_at)
    wrong = product.violations(site)
    require(not wrong, f"verify found: {'; '.join(wrong[:5])}")


def _took_s(site: Site, inserted_at: Mapping[int, float]) -> Sequence[float]:
    with psycopg.connect(dsn(site.store)) as connection:
        rows = connection.execute(_ACKNOWLEDGED, (min(inserted_at),)).fetchall()
    took_s = [sent_s - inserted_at[id_] for id_, sent_s in rows]
    require(len(took_s) == len(inserted_at), f"{len(took_s)} of {len(inserted_at)} events are out")
    return took_s


def plan_events(
    product: Product, sites: Sites, *, flights: int, rounds: int, tell: Callable[[], None]
) -> Figure:
    """From the commit of a plan to the acknowledgement of the last of its events, both topics."""
    values = []
    for _ in range(rounds):
        with sites.site() as site:
            with product.running(site) as running:
                last, _ = site.write([workload.plan(flights, seqn=1)])
                running.look()
                wait_through(site, last)
                all_quiet(site)
            with psycopg.connect(dsn(site.store)) as connection:
                row = connection.execute(_ALL_ACKNOWLEDGED).fetchone()
            assert row is not None
            events, took_s = row
            require(events == 2 * flights, f"{events} events are out, not {2 * flights}")
            values.append(float(took_s))
            tell()
    return figure_of_values(
        f"a plan's {2 * flights:,} events acknowledged",
        "s",
        values,
        Bar(must=3, aim=1.5, at_least=False),
        {
            "value": f"{flights} flights, from the plan's commit to the last acknowledgement "
            "on the msg and schd topics, at-least-once; schd is flushed every 3 s"
        },
    )
