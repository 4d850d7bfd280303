"""Transactions on the own database, each with its driver's errors translated."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from sqlalchemy import Connection, Engine

from msgexchange.store.engine import looking, reading, take_long, writing
from msgexchange.store.errors import translated


class Sessions:
    """Lends a connection for one transaction; thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._writing = writing(engine)
        self._reading = reading(engine)
        self._looking = looking(engine)
        # SQLite has one writer at a time and lets those who wait poll for it: under load one of
        # them can lose every time. Within the process they queue here instead.
        self._one_writer: AbstractContextManager[object] = (
            threading.Lock() if engine.dialect.name == "sqlite" else nullcontext()
        )

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """READ COMMITTED; commits on a clean exit, rolls back on an exception.

        ``Unavailable`` at the exit may mean a commit that nobody knows the outcome of: the next
        transaction takes its locks first and then reads again (spec 3.5).
        """
        with self._one_writer, translated(), self._writing.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Several reads of one moment."""
        with translated(), self._reading.begin() as connection:
            yield connection

    @contextmanager
    def survey(self) -> Iterator[Connection]:
        """Everything there is as of one moment: locks nothing, and may take minutes."""
        with self.read() as connection:
            take_long(connection)
            yield connection

    @contextmanager
    def look(self) -> Iterator[Connection]:
        """One statement, without the cost of a transaction around it."""
        with translated(), self._looking.connect() as connection:
            yield connection
