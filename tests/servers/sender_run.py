"""run.py that ends itself with SIGKILL at a point of sending, while a file in its folder names it.

The points lie around the one insert: before and after it is known as begun; inside its
transaction; with the commit on its way; after it; after it is known as done.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sqlalchemy import event

from msgexchange.app import main, steps
from msgexchange.mailbox.outbound import SqlOutMailbox
from msgexchange.pipeline.sending import SendRequests

POINTS = ("found", "begun", "uncommitted", "committing", "inserted", "confirmed")
ARMED = "die-at"
COM_QUERY = 3


def reached(point: str) -> None:
    if armed(point):
        os.kill(os.getpid(), signal.SIGKILL)


def armed(point: str) -> bool:
    file = Path(ARMED)
    return file.exists() and file.read_text() == point


class WatchedStore:
    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def next(self) -> Any:
        entry = self._store.next()
        if entry is not None:
            reached("found")
        return entry

    def begin(self, *given: Any, **named: Any) -> Any:
        begun = self._store.begin(*given, **named)
        reached("begun")
        return begun

    def sent(self, *given: Any, **named: Any) -> None:
        self._store.sent(*given, **named)
        reached("confirmed")


class WatchedMailbox:
    def __init__(self, mailbox: SqlOutMailbox) -> None:
        self._mailbox = mailbox
        engine = mailbox._engine
        event.listen(engine, "before_cursor_execute", before)
        event.listen(engine, "after_cursor_execute", after)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mailbox, name)

    def insert(self, text: str) -> int:
        row = self._mailbox.insert(text)
        reached("inserted")
        return row


def before(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
    if statement == "COMMIT" and armed("committing"):
        # On its way to the server, and nobody waits for what comes of it.
        connection.connection.driver_connection._execute_command(COM_QUERY, statement)
        reached("committing")


def after(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
    if statement.startswith("INSERT"):
        reached("uncommitted")


def watched(*, store: Any, mailbox: Any, **rest: Any) -> SendRequests:
    return SendRequests(store=WatchedStore(store), mailbox=WatchedMailbox(mailbox), **rest)


vars(steps)["SendRequests"] = watched

if __name__ == "__main__":
    sys.exit(main())
