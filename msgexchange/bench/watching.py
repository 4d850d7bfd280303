"""When everything is through, and what is on a topic then."""

import threading
from collections.abc import Callable
from typing import LiteralString

import psycopg

from msgexchange.bench.servers import dsn, mysql_connection
from msgexchange.bench.site import Site, WrongResult
from msgexchange.broker.reader import StoredRecord, TopicReader
from msgexchange.clock import SystemClock

POLL_S = 0.005
THROUGH_S_MAX = 300.0
CLOCK = SystemClock()

_ALL_OUT = (
    "SELECT NOT EXISTS (SELECT 1 FROM msg_event_state WHERE state = 'PENDING' "
    "AND target = 'KAFKA:msg')"
)
_ALL_QUIET = (
    "SELECT NOT EXISTS (SELECT 1 FROM msg_event_state WHERE state = 'PENDING') "
    "AND NOT EXISTS (SELECT 1 FROM proc_state WHERE backfill_next_at IS NOT NULL)"
)


def wait_through(site: Site, last_id: int) -> float:
    """When (monotonic) the row carries its mark and no msg event waits any more.

    Messages are worked on in id order and marked after their commit, so that all rows before the
    last one are through then, too.
    """
    mailbox = mysql_connection(site.mailbox)
    mailbox.autocommit(True)
    try:
        with mailbox.cursor() as cursor:

            def marked() -> bool:
                cursor.execute(
                    "SELECT PROC_FLAG = 'Y' FROM CMINMSGS WHERE CMINMSGS_ID = %s", (last_id,)
                )
                row = cursor.fetchone()
                return row is not None and bool(row[0])

            _wait(marked, f"message {last_id} is not marked")
    finally:
        mailbox.close()
    wait_for_store(site, _ALL_OUT, "events wait")
    return CLOCK.monotonic()


def all_quiet(site: Site) -> None:
    """Wait until both topics have everything and every mark is confirmed."""
    wait_for_store(site, _ALL_QUIET, "events or marks wait")


def topic_contents(bootstrap: str, topic: str) -> list[StoredRecord]:
    """Every record, read_committed."""
    reader = TopicReader(bootstrap, topic)
    try:
        return list(reader.records())
    finally:
        reader.close()


def wait_for_store(site: Site, question: LiteralString, what: str) -> None:
    """Until the question, one boolean, is answered with yes; else ``what`` is told."""
    with psycopg.connect(dsn(site.store), autocommit=True) as connection:

        def answer() -> bool:
            row = connection.execute(question).fetchone()
            return row is not None and bool(row[0])

        _wait(answer, what)


def _wait(condition: Callable[[], bool], what: str) -> None:
    pause = threading.Event()
    deadline_s = CLOCK.monotonic() + THROUGH_S_MAX
    while not condition():
        if CLOCK.monotonic() > deadline_s:
            raise WrongResult(f"after {THROUGH_S_MAX:g} s {what}")
        pause.wait(POLL_S)
