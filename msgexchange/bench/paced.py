"""Another program that writes the mailbox, so many rows a second (7.5)."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context

from sqlalchemy import make_url

from msgexchange.bench.servers import mysql_connection
from msgexchange.bench.site import Site
from msgexchange.clock import SystemClock

WRITTEN_S_MAX = 600.0
_INSERT = "INSERT INTO CMINMSGS (MSG_TEXT, RECV_TIME) VALUES (%s, NOW(3))"


class Writer:
    """A process of its own, so that it takes nothing of the interpreter that is measured."""

    def __init__(self) -> None:
        # Not forked: this process has threads and open connections.
        self._pool = get_context("spawn").Pool(1)
        self._pool.apply(_ready)

    def write(self, site: Site, texts: Sequence[str], *, per_s: float) -> Mapping[int, float]:
        """Ids with the moment (seconds since 1970) at which each row's INSERT began."""
        url = site.mailbox.render_as_string(hide_password=False)
        return self._pool.apply_async(_write, (url, list(texts), per_s)).get(WRITTEN_S_MAX)

    def close(self) -> None:
        self._pool.terminate()
        self._pool.join()


@contextmanager
def writer() -> Iterator[Writer]:
    """One that is ready to write; it ends with the block."""
    opened = Writer()
    try:
        yield opened
    finally:
        opened.close()


def _ready() -> None:
    """Everything is imported by now."""


def _write(url: str, texts: Sequence[str], per_s: float) -> dict[int, float]:
    clock = SystemClock()
    mailbox = mysql_connection(make_url(url))
    mailbox.autocommit(True)
    pause = threading.Event()
    began_s = clock.monotonic()
    inserted_at: dict[int, float] = {}
    with mailbox.cursor() as cursor:
        for number, text in enumerate(texts):
            pause.wait(max(began_s + number / per_s - clock.monotonic(), 0))
            at = clock.now().timestamp()
            cursor.execute(_INSERT, (text,))
            inserted_at[int(cursor.lastrowid)] = at
    mailbox.close()
    return inserted_at
