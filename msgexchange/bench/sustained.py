"""Operations end to end, in batches and one by one, beside raw writes of the same rows (7.5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from sqlalchemy import URL, Table

from msgexchange.bench import rows, workload
from msgexchange.bench.figures import Bar, Figure, Pair, figure_of_pairs
from msgexchange.bench.rows import GATES, Connection, Row, Written
from msgexchange.bench.site import Product, Site, Sites, require
from msgexchange.bench.watching import all_quiet, topic_contents, wait_through
from msgexchange.clock import SystemClock
from msgexchange.store.tables import flight_change, msg_event, msg_event_state, proc_state

FLOOR_BATCH = 50
CLOCK = SystemClock()

Floor = Callable[[Connection, Sequence[Written]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How the pump commits, and what that is compared with."""

    name: str
    bar: Bar
    batch_max: int | None
    floor: Floor
    value_is: str
    floor_is: str


def sustained(
    way: Way,
    product: Product,
    sites: Sites,
    *,
    messages: int,
    flights: int,
    rounds: int,
    tell: Callable[[], None],
) -> Figure:
    """``rounds`` times the product and then its floor; ``tell`` is called after each of the two."""
    pairs = []
    for _ in range(rounds):
        with sites.site() as site:
            took_s = seconds_through(way, product, site, messages, flights)
            tell()
            with sites.store() as store:
                floor_s = _floor(way, site, store)
                tell()
        pairs.append(Pair(messages / took_s, messages / floor_s))
    conditions = {
        "value": f"{messages} operations on {flights} flights; {way.value_is}",
        "floor": way.floor_is,
    }
    return figure_of_pairs(way.name, "messages/s", pairs, way.bar, conditions)


def seconds_through(
    way: Way,
    product: Product,
    site: Site,
    messages: int,
    flights: int,
    *,
    traces_to: str | None = None,
) -> float:
    """Seconds from the commit in the mailbox to the last mark and acknowledgement; checked."""
    first, _ = site.write([workload.plan(flights, seqn=1)])
    with product.running(site, batch_max=way.batch_max, traces_to=traces_to) as running:
        running.look()
        wait_through(site, first)
        all_quiet(site)
        last, began_s = site.write(workload.operations(messages, flights, first_seqn=2))
        running.look()
        took_s = wait_through(site, last) - began_s
        all_quiet(site)
    _check(product, site, messages, flights)
    return took_s


def _check(product: Product, site: Site, messages: int, flights: int) -> None:
    wrong = product.violations(site)
    require(not wrong, f"verify found: {'; '.join(wrong[:5])}")
    total = messages + flights
    require(rows.count(site.store, flight_change) == total, f"there are not {total} versions")
    require(rows.count(site.store, msg_event) == 2 * total, f"there are not {2 * total} events")
    said = len(topic_contents(site.bootstrap, site.msg_topic))
    require(said == total, f"the msg topic has {said} records, not {total}")


def _floor(way: Way, site: Site, store: URL) -> float:
    """Seconds for the same rows, written raw; checked."""
    written = rows.written_after(site.store, 1)
    rows.copy_flights(site.store, store)
    before = rows.sizes(store)
    with rows.connect(store) as connection:
        began_s = CLOCK.monotonic()
        way.floor(connection, written)
        took_s = CLOCK.monotonic() - began_s
    after = rows.sizes(store)
    for table, found in after.items():
        wanted = before[table] + _new_rows(written, table)
        require(found == wanted, f"the floor wrote {found} rows of {table}, not {wanted}")
    return took_s


def _new_rows(written: Sequence[Written], table: str) -> int:
    """Rows a floor adds; flights and their gates are there already."""
    added = {
        proc_state.name: len(written),
        flight_change.name: sum(len(one.changes) for one in written),
        msg_event.name: sum(len(one.events) for one in written),
        msg_event_state.name: sum(len(one.states) for one in written),
    }
    return added.get(table, 0)


def _pipelined(connection: Connection, written: Sequence[Written]) -> None:
    for start in range(0, len(written), FLOOR_BATCH):
        batch = written[start : start + FLOOR_BATCH]
        with connection.pipeline(), connection.cursor() as cursor:
            for table, values in _inserted(batch):
                cursor.executemany(rows.inserting(table), values)
            cursor.executemany(rows.updating_flight(), _flight_values(batch))
            gates = {one.gates[0][0]: one.gates for one in batch if one.gates}
            if gates:
                cursor.executemany(_DELETE_GATES, [[flid] for flid in gates])
                cursor.executemany(rows.inserting(GATES), list(chain.from_iterable(gates.values())))
            connection.commit()


def _one_by_one(connection: Connection, written: Sequence[Written]) -> None:
    with connection.cursor() as cursor:
        for one in written:
            for table, values in _inserted([one]):
                cursor.execute(
                    rows.inserting(table, len(values)), list(chain.from_iterable(values))
                )
            cursor.execute(rows.updating_flight(), _flight_values([one])[0])
            if one.gates:
                cursor.execute(_DELETE_GATES, [one.gates[0][0]])
                cursor.execute(
                    rows.inserting(GATES, len(one.gates)), list(chain.from_iterable(one.gates))
                )
            connection.commit()


_DELETE_GATES = "DELETE FROM flight_gate WHERE flid = %s"


def _inserted(batch: Sequence[Written]) -> list[tuple[Table, list[Row]]]:
    return [
        (proc_state, [one.message for one in batch]),
        (flight_change, [row for one in batch for row in one.changes]),
        (msg_event, [row for one in batch for row in one.events]),
        (msg_event_state, [row for one in batch for row in one.states]),
    ]


def _flight_values(batch: Sequence[Written]) -> list[Row]:
    """Each flight's row once, with its key once more for the condition."""
    flights = {one.flight[0]: one.flight for one in batch if one.flight is not None}
    return [[*row, flid] for flid, row in flights.items()]


BATCHED = Way(
    name="sustained operations, batches up to 200",
    bar=Bar(must=0.50, aim=0.70, at_least=True),
    batch_max=None,
    floor=_pipelined,
    value_is="from the commit of all of them in the mailbox to the last mark there and the last "
    "acknowledgement on the msg topic; the whole pipeline on its own threads in one process, "
    "at-least-once",
    floor_is=f"the same rows by psycopg, transactions of {FLOOR_BATCH} messages in pipeline mode",
)
SINGLE = Way(
    name="sustained operations, batch 1",
    bar=Bar(must=0.30, aim=0.50, at_least=True),
    batch_max=1,
    floor=_one_by_one,
    value_is="as above, but one message a transaction in the pump",
    floor_is="the same rows by psycopg, one message a transaction, one statement a table",
)
