"""Memory while a long backlog of the mailbox is taken in, beside that of a short one (7.5)."""

from collections.abc import Callable
from statistics import median

from psycopg import sql

from msgexchange.bench import rows, workload
from msgexchange.bench.figures import Bar, Figure, Pair, figure_of_pairs
from msgexchange.bench.memory import forget_peak, peak_mib
from msgexchange.bench.servers import mysql_connection
from msgexchange.bench.site import Product, Site, Sites, require
from msgexchange.clock import SystemClock
from msgexchange.store.tables import proc_state

CLOCK = SystemClock()
COPIED = 1_000
"""Rows written one by one; the server makes the others from them, so that none is held here."""
ROWS_AT_ONCE = 50_000
_COPY = (
    "INSERT INTO CMINMSGS (CMINMSGS_ID, MSG_TEXT, RECV_TIME) "
    "SELECT CMINMSGS_ID + %s, MSG_TEXT, NOW(3) FROM CMINMSGS WHERE CMINMSGS_ID <= %s"
)
_WAITS = sql.SQL("state = 'PENDING'")


def backlog(
    product: Product,
    sites: Sites,
    *,
    messages: int,
    few: int,
    rounds: int,
    tell: Callable[[], None],
) -> Figure:
    """Resident memory with so many rows in the mailbox beside that with ``few``; how fast, too."""
    pairs, rates = [], []
    for _ in range(rounds):
        few_mib, _ = _round(product, sites, few)
        tell()
        many_mib, rate = _round(product, sites, messages)
        tell()
        pairs.append(Pair(many_mib, few_mib))
        rates.append(rate)
    return figure_of_pairs(
        f"memory while {messages:,} mailbox rows are taken in",
        "MiB",
        pairs,
        Bar(must=1.10, aim=1.05, at_least=False),
        {
            "value": f"greatest resident size of the process while the inbox step takes in "
            f"{messages:,} waiting rows, at {median(rates):,.0f} rows/s; nothing else works",
            "floor": f"the same with {few:,} rows",
        },
    )


def _round(product: Product, sites: Sites, messages: int) -> tuple[float, float]:
    """Peak in MiB, and rows a second; checked."""
    with sites.site() as site:
        _fill(site, messages)
        with product.line(site) as line:
            step = line.step("inbox").step
            forget_peak()
            began_s = CLOCK.monotonic()
            while step() <= 0:
                pass
            took_s = CLOCK.monotonic() - began_s
            peak = peak_mib()
            watermark = line.store.intake.state().watermark
        require(watermark == messages, f"W is {watermark}, not {messages}")
        waiting = rows.count(site.store, proc_state, _WAITS)
        require(waiting == messages, f"{waiting} messages wait, not {messages}")
    return peak, messages / took_s


def _fill(site: Site, messages: int) -> None:
    """Operations with the ids from 1 on, none left out."""
    there, _ = site.write(workload.operations(min(messages, COPIED), COPIED, first_seqn=1))
    connection = mysql_connection(site.mailbox)
    connection.autocommit(True)
    try:
        with connection.cursor() as cursor:
            while there < messages:
                copied = min(there, ROWS_AT_ONCE, messages - there)
                cursor.execute(_COPY, (there, copied))
                there += copied
    finally:
        connection.close()
