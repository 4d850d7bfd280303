"""Operations on tables that hold what years of them leave, beside the same on empty ones (7.5)."""

from collections.abc import Callable, Mapping

from psycopg import sql
from sqlalchemy import Table

from msgexchange.bench import rows, workload
from msgexchange.bench.figures import Bar, Figure, Pair, figure_of_pairs
from msgexchange.bench.rows import Connection
from msgexchange.bench.site import Product, Site, Sites, require
from msgexchange.bench.watching import all_quiet, wait_through
from msgexchange.store.tables import (
    flight_change,
    flight_schd,
    msg_event,
    msg_event_state,
    names_of,
    proc_state,
)

FLIGHTS_OF_MESSAGES = 10
EVENTS_OF_MESSAGE = 2


def growth(
    product: Product,
    sites: Sites,
    *,
    grown: int,
    messages: int,
    flights: int,
    rounds: int,
    tell: Callable[[], None],
) -> Figure:
    """Throughput with ``grown`` old messages, twice the events and a tenth of the flights."""
    pairs = []
    for _ in range(rounds):
        with sites.site() as site:
            first, _ = site.write([workload.plan(flights, seqn=1)])
            with product.running(site) as running:
                running.look()
                wait_through(site, first)
            young = _rate(product, site, messages, flights, first_seqn=2)
            tell()
            _grow(site, grown)
            old = _rate(product, site, messages, flights, first_seqn=2 + messages)
            tell()
        pairs.append(Pair(old, young))
    return figure_of_pairs(
        "growth: operations with large tables",
        "messages/s",
        pairs,
        Bar(must=0.9, aim=0.95, at_least=True),
        {
            "value": f"{messages} operations on {flights} flights, with {grown:,} old messages and "
            f"changes, {EVENTS_OF_MESSAGE * grown:,} sent events and "
            f"{grown // FLIGHTS_OF_MESSAGES:,} other flights in the tables",
            "floor": "as many operations before those were there, in the same database",
        },
    )


def _rate(product: Product, site: Site, messages: int, flights: int, *, first_seqn: int) -> float:
    before = rows.count(site.store, flight_change)
    with product.running(site) as running:
        last, began_s = site.write(workload.operations(messages, flights, first_seqn=first_seqn))
        running.look()
        took_s = wait_through(site, last) - began_s
        all_quiet(site)
    changed = rows.count(site.store, flight_change) - before
    require(changed == messages, f"{messages} operations left {changed} versions")
    return messages / took_s


def _grow(site: Site, grown: int) -> None:
    """Old rows like those that are there, with ids below all of theirs."""
    below, other = sql.SQL("-n"), sql.SQL("'OLD-' || n")
    with rows.connect(site.store) as connection:
        _multiply(connection, proc_state, "msg_id", grown, {"msg_id": below, "identity_key": other})
        _multiply(connection, flight_change, "msg_id", grown, {"msg_id": below, "flid": other})
        events = EVENTS_OF_MESSAGE * grown
        _multiply(connection, msg_event, "event_id", events, {"event_id": below, "flid": other})
        _multiply(
            connection, msg_event_state, "event_id", events, {"event_id": below, "flid": other}
        )
        _multiply(connection, flight_schd, "flid", grown // FLIGHTS_OF_MESSAGES, {"flid": other})
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE")
    found = rows.count(site.store, proc_state, sql.SQL("msg_id < 0"))
    require(found == grown, f"{found} old messages were made, not {grown}")


def _multiply(
    connection: Connection,
    table: Table,
    key: str,
    count: int,
    changed: Mapping[str, sql.Composable],
) -> None:
    """So many copies of the table's last row, each with values of its own for ``changed``."""
    values = [changed.get(name, sql.Identifier("one", name)) for name in names_of(table)]
    connection.execute(
        sql.SQL(
            "INSERT INTO {table} ({names}) SELECT {values} FROM "
            "(SELECT * FROM {table} ORDER BY {key} DESC LIMIT 1) one, generate_series(1, %s) n"
        ).format(
            table=sql.Identifier(table.name),
            names=sql.SQL(", ").join(map(sql.Identifier, names_of(table))),
            values=sql.SQL(", ").join(values),
            key=sql.Identifier(key),
        ),
        (count,),
    )
