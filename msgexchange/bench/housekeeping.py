"""How long a message takes while every daily job has a lot to do (spec 5.4).

It has no line in 7.5's table; its bar is that of the snapshot held open.
"""

import threading
from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import LiteralString

import psycopg

from msgexchange.bench import rows, workload
from msgexchange.bench.figures import Bar, Figure, Pair, figure_of_pairs
from msgexchange.bench.servers import dsn, mysql_connection
from msgexchange.bench.site import Product, Running, Site, Sites, require
from msgexchange.bench.watching import all_quiet, wait_for_store, wait_through
from msgexchange.clock import SystemClock
from msgexchange.store.tables import flight_hst, flight_schd, proc_state_hst

CLOCK = SystemClock()
PER_S = 50
STANDING = 200
"""Flights the paced messages are about; all others are past."""

_AGED: Sequence[LiteralString] = (
    "UPDATE flight_schd SET operation_day = current_date + 1 WHERE flid <= %(last)s",
    (
        "UPDATE flight_schd SET operation_day = current_date - 30, "
        "updated_at = updated_at - interval '30 days' WHERE flid > %(last)s"
    ),
    (
        "UPDATE proc_state SET received_at = received_at - interval '120 days', "
        "finished_at = finished_at - interval '120 days'"
    ),
    "UPDATE flight_change SET changed_at = changed_at - interval '120 days'",
    "UPDATE msg_event_state SET sent_at = sent_at - interval '120 days'",
    "UPDATE job_run SET finished_at = NULL",
)
_ALL_DONE = "SELECT NOT EXISTS (SELECT 1 FROM job_run WHERE finished_at IS NULL)"


def housekeeping(
    product: Product,
    sites: Sites,
    *,
    flights: int,
    messages: int,
    paced: int,
    rounds: int,
    tell: Callable[[], None],
) -> Figure:
    """p99 of ``paced`` messages while jobs clear so many flights and messages away, and without."""
    pairs = []
    for _ in range(rounds):
        with sites.site() as site:
            first, _ = site.write([workload.plan(flights, seqn=1)])
            with product.running(site, keeps_house=True) as running:
                running.look()
                wait_through(site, first)
                last, _ = site.write(workload.operations(messages, flights, first_seqn=2))
                running.look()
                wait_through(site, last)
                all_quiet(site)
                seqn = messages + 2
                without_s = _p99_s(site, running, paced, seqn)
                all_quiet(site)
            tell()
            aged = messages + paced + 1
            _age(site)
            with product.running(site, keeps_house=True) as running:
                with_s = _p99_s(site, running, paced, seqn + paced)
                wait_for_store(site, _ALL_DONE, "jobs are not through")
                all_quiet(site)
            tell()
            _check(product, site, flights, aged)
        pairs.append(Pair(with_s, without_s))
    return figure_of_pairs(
        "p99 of a message while all daily jobs run",
        "s",
        pairs,
        Bar(must=2, aim=1.3, at_least=False),
        {
            "value": f"{paced} operations at {PER_S}/s, row insert to terminal commit, from the "
            f"start of a process whose jobs find {flights - STANDING:,} past flights and "
            f"{messages:,} messages with their changes and events past their times",
            "floor": "the same operations in the process before, whose jobs have nothing to do",
        },
    )


def _p99_s(site: Site, running: Running, paced: int, first_seqn: int) -> float:
    """Seconds from the insert to the commit, by the clock that both databases share."""
    texts = workload.operations(paced, STANDING, first_seqn=first_seqn)
    mailbox = mysql_connection(site.mailbox)
    mailbox.autocommit(True)
    pause = threading.Event()
    began_s = CLOCK.monotonic()
    inserted_at: dict[int, float] = {}
    try:
        with mailbox.cursor() as cursor:
            for number, text in enumerate(texts):
                pause.wait(max(began_s + number / PER_S - CLOCK.monotonic(), 0))
                at = CLOCK.now().timestamp()
                cursor.execute(
                    "INSERT INTO CMINMSGS (MSG_TEXT, RECV_TIME) VALUES (%s, NOW(3))", (text,)
                )
                inserted_at[int(cursor.lastrowid)] = at
                running.look()
    finally:
        mailbox.close()
    wait_through(site, max(inserted_at))
    with psycopg.connect(dsn(site.store)) as connection:
        found = connection.execute(
            "SELECT msg_id, extract(epoch FROM finished_at)::float FROM proc_state "
            "WHERE msg_id >= %s",
            (min(inserted_at),),
        ).fetchall()
    took_s = [finished_s - inserted_at[id_] for id_, finished_s in found]
    require(len(took_s) == paced, f"{len(took_s)} of {paced} messages are through")
    return float(quantiles(took_s, n=100)[-1])


def _age(site: Site) -> None:
    """Everything so far happened long ago, and no job has run."""
    with psycopg.connect(dsn(site.store)) as connection:
        for statement in _AGED:
            needs_last = "%(last)s" in statement
            connection.execute(statement, {"last": workload.flid(STANDING)} if needs_last else None)


def _check(product: Product, site: Site, flights: int, aged: int) -> None:
    standing = rows.count(site.store, flight_schd)
    require(standing == STANDING, f"{standing} flights stand, not {STANDING}")
    swept = rows.count(site.store, flight_hst)
    require(swept == flights - STANDING, f"{swept} flights are in history")
    archived = rows.count(site.store, proc_state_hst)
    require(archived == aged, f"{archived} messages are archived, not {aged}")
    wrong = product.violations(site)
    require(not wrong, f"verify found: {'; '.join(wrong[:5])}")
