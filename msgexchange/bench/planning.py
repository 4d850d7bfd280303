"""A large plan, the dispatch of its events, and the board that shows its flights (7.5)."""

import gc
from collections.abc import Callable
from http.client import HTTPConnection
from urllib.parse import urlsplit

import orjson
from confluent_kafka import Producer
from psycopg import sql
from sqlalchemy import URL, Table

from msgexchange.bench import rows, workload
from msgexchange.bench.figures import Bar, Figure, Pair, figure_of_pairs, figure_of_values
from msgexchange.bench.memory import forget_peak, peak_mib, resident_mib
from msgexchange.bench.site import Line, Product, Site, Sites, require
from msgexchange.bench.watching import topic_contents
from msgexchange.broker.reader import StoredRecord
from msgexchange.broker.topics import TopicNeed, Topics
from msgexchange.clock import SystemClock
from msgexchange.pipeline.step import NOW
from msgexchange.store.tables import details, flight_schd

PAGE = 500
FIRST = " "
"""Sorts before every FLID."""
WARM_FLIGHTS = 3
CLOCK = SystemClock()
_MIB = 1 << 20


class Plans:
    """Rounds of one plan each; every figure is taken of the same rounds."""

    def __init__(self, product: Product, sites: Sites, *, flights: int) -> None:
        self._product = product
        self._sites = sites
        self._flights = flights
        self._text = workload.plan(flights, seqn=2)
        self._plans: list[Pair] = []
        self._added_mib: list[float] = []
        self._dispatches: list[Pair] = []
        self._pages: list[Pair] = []

    def round(self, tell: Callable[[], None]) -> None:
        """Measure all of it once; ``tell`` is called four times."""
        with self._sites.site() as site:
            with self._product.line(site) as line:
                plan_s = self._plan(site, line)
                tell()
                with self._sites.store() as store:
                    self._plans.append(Pair(plan_s, self._copy(site, store)))
                tell()
                dispatched_s = self._dispatch(line)
            records = topic_contents(site.bootstrap, site.msg_topic)
            self._check_topic(records)
            produced_s = _produce(site, records)
            sent = len(records)
            self._dispatches.append(Pair(sent / dispatched_s, sent / produced_s))
            tell()
            self._pages += _read_pages(self._product, site)
            tell()

    def figures(self) -> list[Figure]:
        """Of all rounds so far."""
        size = f"{self._flights} flights, {len(self._text.encode()) / _MIB:.1f} MiB of XML"
        return [
            figure_of_pairs(
                "plan of 10,000 flights, decode to commit",
                "s",
                self._plans,
                Bar(must=8, aim=4, at_least=False),
                {
                    "value": f"{size}; one step of the pump: raw text read, decoded, committed, "
                    "marked in the mailbox",
                    "floor": "COPY of the same rows in one transaction",
                },
            ),
            figure_of_values(
                "the same plan, memory added",
                "MiB",
                # The allocator keeps what the first round took, so that later ones add less.
                self._added_mib[:1],
                Bar(must=200, aim=200, at_least=False),
                {"value": f"{size}; greatest resident size during the step, above before"},
            ),
            figure_of_pairs(
                "dispatch from a full outbox",
                "events/s",
                self._dispatches,
                Bar(must=0.10, aim=0.20, at_least=True),
                {
                    "value": f"{self._flights} events of that plan to the msg topic: read, sent, "
                    "acknowledged, marked SENT; windows of 500, at-least-once",
                    "floor": "the same records by a confluent-kafka producer, idempotent, acks=all",
                },
            ),
            figure_of_pairs(
                "GET /all/flights, a page of 500",
                "s",
                self._pages,
                Bar(must=5, aim=3, at_least=False),
                {
                    "value": f"over HTTP, {self._flights} flights, every page once a round",
                    "floor": "the same rows as text by psycopg: the flights and, in the same "
                    "round trip, their items",
                },
            ),
        ]

    def _plan(self, site: Site, line: Line) -> float:
        """Seconds from the raw text in the mailbox to the commit and its mark."""
        warm = workload.plan(WARM_FLIGHTS, seqn=1)
        _, inbox, pump = site.write([warm]), line.step("inbox"), line.step("pump")
        _until_idle(inbox.step)
        _until_idle(pump.step)
        site.write([self._text])
        _until_idle(inbox.step)
        gc.collect()
        before = resident_mib()
        forget_peak()
        began_s = CLOCK.monotonic()
        pump.step()
        took_s = CLOCK.monotonic() - began_s
        self._added_mib.append(peak_mib() - before)
        known = rows.count(site.store, flight_schd)
        require(known == self._flights, f"{known} flights are there, not {self._flights}")
        return took_s

    def _copy(self, site: Site, store: URL) -> float:
        """Seconds for the rows of that plan by COPY."""
        tables = (*rows.FLIGHT_TABLES, *rows.WRITTEN_ONCE)
        with rows.connect(site.store) as reading:
            taken = {table: rows.take(reading, table, sql.SQL("true")) for table in tables}
        with rows.connect(store) as writing:
            began_s = CLOCK.monotonic()
            for table, content in taken.items():
                rows.put(writing, table, content)
            writing.commit()
            took_s = CLOCK.monotonic() - began_s
        require(rows.sizes(store) == rows.sizes(site.store), "the floor has other rows")
        return took_s

    def _dispatch(self, line: Line) -> float:
        """Seconds until the outbox has nothing left for the msg topic."""
        dispatch = line.step("dispatcher-msg")
        began_s = CLOCK.monotonic()
        _until_idle(dispatch.step)
        return CLOCK.monotonic() - began_s

    def _check_topic(self, records: list[StoredRecord]) -> None:
        total = self._flights + WARM_FLIGHTS
        require(len(records) == total, f"the msg topic has {len(records)} records, not {total}")
        keys = {record.key for record in records}
        require(len(keys) == self._flights, f"the msg topic has {len(keys)} keys")


def _until_idle(step: Callable[[], float]) -> None:
    while step() <= NOW:
        pass


def _produce(site: Site, records: list[StoredRecord]) -> float:
    """Seconds for the same records by a producer that does nothing else; checked."""
    producer = Producer(
        {
            "bootstrap.servers": site.bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "log_level": 3,
        }
    )
    topic = f"floor-{site.topics}"
    topics = Topics(site.bootstrap)
    topics.create([TopicNeed(name=topic, compacted=False)])
    # As the product's, it knows the topic before the clock starts.
    producer.list_topics(topic, timeout=10)
    began_s = CLOCK.monotonic()
    for record in records:
        producer.produce(topic, record.value, record.key, headers=list(record.headers))
    left = producer.flush(60)
    took_s = CLOCK.monotonic() - began_s
    require(left == 0, f"{left} records of the floor were not acknowledged")
    found = len(topic_contents(site.bootstrap, topic))
    require(found == len(records), f"the floor's topic has {found} records")
    return took_s


def _read_pages(product: Product, site: Site) -> list[Pair]:
    """Seconds a page over HTTP, and as rows; every page once, the two in turn; checked."""
    pairs = []
    seen = 0
    with (
        product.running(site, works=False) as running,
        rows.connect(site.store) as connection,
    ):
        address = urlsplit(running.url)
        http = HTTPConnection(address.netloc, timeout=30)
        _get(http, FIRST)
        _select(connection, FIRST)
        after: str | None = FIRST
        while after is not None:
            began_s = CLOCK.monotonic()
            body = _get(http, after)
            got_s = CLOCK.monotonic() - began_s
            began_s = CLOCK.monotonic()
            found = _select(connection, after)
            pairs.append(Pair(got_s, CLOCK.monotonic() - began_s))
            page = orjson.loads(body)
            flids = [flight["flid"] for flight in page["flights"]]
            require(flids == [row[0] for row in found], f"the page after {after!r} differs")
            seen += len(flids)
            after = page["next"]
        http.close()
    require(seen == rows.count(site.store, flight_schd), f"the pages have {seen} flights")
    return pairs


def _get(http: HTTPConnection, after: str) -> bytes:
    given = "" if after == FIRST else f"&after={after}"
    http.request("GET", f"/all/flights?limit={PAGE}{given}")
    answer = http.getresponse()
    body = answer.read()
    require(answer.status == 200, f"GET /all/flights answered {answer.status}: {body[:200]!r}")
    return body


def _select(connection: rows.Connection, after: str) -> list[rows.Row]:
    """The flights of the page; their items are fetched with them."""
    with connection.pipeline():
        flights = connection.execute(_FLIGHTS, (after, PAGE))
        items = [connection.execute(query, (after, PAGE)) for query in _ITEMS]
        found = flights.fetchall()
        for item in items:
            item.fetchall()
    connection.rollback()
    return list(found)


def _every_column(table: Table) -> sql.Composed:
    return sql.SQL("SELECT {} FROM {}").format(
        sql.SQL(", ").join(
            sql.SQL("{}::text").format(sql.Identifier(str(column.name))) for column in table.columns
        ),
        sql.Identifier(table.name),
    )


_ON_PAGE = sql.SQL(" WHERE flid > %s ORDER BY flid LIMIT %s")
_FLIGHTS = sql.Composed([_every_column(flight_schd), _ON_PAGE])
_ITEMS = [
    _every_column(table)
    + sql.SQL(" WHERE flid IN (SELECT flid FROM flight_schd")
    + _ON_PAGE
    + sql.SQL(")")
    for table in details.values()
]
