"""A flush of states with a small and with a large backlog over the same flights (7.5)."""

import io
from collections.abc import Callable
from statistics import median

from psycopg import sql
from sqlalchemy import URL

from msgexchange.bench import rows, workload
from msgexchange.bench.figures import Bar, Figure, Pair, figure_of_pairs
from msgexchange.bench.site import Product, Sites, require
from msgexchange.bench.watching import topic_contents
from msgexchange.clock import SystemClock
from msgexchange.codec.encode import encode
from msgexchange.store.tables import msg_event_state

CLOCK = SystemClock()
PAYLOAD_CHARS = 500
_WAITS = sql.SQL("state = 'PENDING'")
_EVENTS = sql.SQL(
    "COPY msg_event (event_id, nonce, target, event_type, partition_key, flid, msg_id, "
    "state_version, operation_day, payload, created_at) FROM STDIN"
)
_STATES = sql.SQL(
    "COPY msg_event_state (event_id, target, flid, payload_bytes, state, attempts) FROM STDIN"
)


def flush(
    product: Product,
    sites: Sites,
    *,
    flights: int,
    backlog: int,
    rounds: int,
    tell: Callable[[], None],
) -> Figure:
    """``backlog`` events over so many flights beside one event of each; a multiple of them."""
    pairs = []
    for _ in range(rounds):
        large_s = _round(product, sites, flights, backlog // flights)
        tell()
        small_s = _round(product, sites, flights, 1)
        tell()
        pairs.append(Pair(large_s, small_s))
    return figure_of_pairs(
        f"schd flush, {backlog:,} pending over {flights:,} flights",
        "s/flush",
        pairs,
        Bar(must=2, aim=1.3, at_least=False),
        {
            "value": "flushes of 500 flights until nothing waits: winners found, sent, "
            "acknowledged, marked, the events they stand for SUPERSEDED; median flush of a round",
            "floor": f"the same with {flights:,} pending, one of each flight",
        },
    )


def _round(product: Product, sites: Sites, flights: int, per_flight: int) -> float:
    """Median seconds of the flushes that empty the backlog; checked."""
    with sites.site() as site:
        _fill(site.store, flights, per_flight)
        with product.line(site) as line:
            step = line.step("schd-flush").step
            took_s = []
            while rows.count(site.store, msg_event_state, _WAITS):
                began_s = CLOCK.monotonic()
                step()
                took_s.append(CLOCK.monotonic() - began_s)
        _check(site.store, flights, per_flight)
        records = topic_contents(site.bootstrap, site.schd_topic)
        newest = {record.header("state-version") for record in records}
        require(len(records) == flights, f"the schd topic has {len(records)} records")
        require(newest == {str(per_flight)}, f"the schd topic has versions {newest}")
    return median(took_s)


def _check(store: URL, flights: int, per_flight: int) -> None:
    sent = rows.count(store, msg_event_state, sql.SQL("state = 'SENT'"))
    superseded = rows.count(store, msg_event_state, sql.SQL("state = 'SUPERSEDED'"))
    require(sent == flights, f"{sent} events are SENT, not {flights}")
    wanted = flights * (per_flight - 1)
    require(superseded == wanted, f"{superseded} events are SUPERSEDED, not {wanted}")


def _fill(store: URL, flights: int, per_flight: int) -> None:
    """Events as the pump appends them: the flights in turn, again and again."""
    payload = encode({"flid": "", "state": {"RMRK": "x" * PAYLOAD_CHARS}}).decode()
    events, states = io.StringIO(), io.StringIO()
    total = flights * per_flight
    for number in range(total):
        flid = workload.flid(1 + number % flights)
        version = 1 + number // flights
        events.write(
            f"{number + 1}\t{number}\tKAFKA:schd\tUPSERT\t{flid}\t{flid}\t{number + 1}\t{version}\t"
            f"2026-09-03\t{payload}\t2026-09-03 10:00:00+00\n"
        )
        states.write(f"{number + 1}\tKAFKA:schd\t{flid}\t{len(payload)}\tPENDING\t0\n")
    with rows.connect(store) as connection:
        for query, content in ((_EVENTS, events), (_STATES, states)):
            with connection.cursor().copy(query) as copy:
                copy.write(content.getvalue())
        connection.execute(
            "UPDATE pipeline_lock SET next_event_id = %s WHERE next_event_id IS NOT NULL",
            (total + 1,),
        )
