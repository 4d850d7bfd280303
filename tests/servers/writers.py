"""Other programs that write the mailbox: transactions that overlap, linger and roll back."""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import URL, Connection, create_engine

INSERT = "INSERT INTO CMINMSGS (MSG_TEXT, RECV_TIME, PROC_FLAG) VALUES (%s, NOW(3), 'N')"


@dataclass
class Writers:
    """``committed`` and ``rolled_back`` are complete once ``running`` is False."""

    url: URL
    ids_max: int
    stride: int = 1
    writers: int = 8
    rollbacks: float = 0.05
    lingering: float = 0.2
    committed: set[int] = field(default_factory=set)
    rolled_back: set[int] = field(default_factory=set)
    failures: list[BaseException] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, seed: int) -> None:
        self._threads = [
            threading.Thread(target=self._write, args=(random.Random(seed + number),))
            for number in range(self.writers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _write(self, rng: random.Random) -> None:
        engine = create_engine(self.url)
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(f"SET SESSION auto_increment_increment = {self.stride}")
                connection.commit()
                for _ in range(self.ids_max // self.writers):
                    self._once(connection, rng)
        except BaseException as failure:
            self.failures.append(failure)
            raise
        finally:
            engine.dispose()

    def _once(self, connection: Connection, rng: random.Random) -> None:
        id_ = connection.exec_driver_sql(INSERT, ("x" * rng.randrange(2_000),)).lastrowid
        if rng.random() < self.lingering:
            time.sleep(rng.random() * 0.5)
        if rng.random() < self.rollbacks:
            connection.rollback()
            self.rolled_back.add(id_)
        else:
            connection.commit()
            self.committed.add(id_)


@contextmanager
def open_insert(url: URL) -> Iterator[tuple[Connection, int]]:
    """A transaction with one row that is not committed yet, and the row's id."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            yield connection, connection.exec_driver_sql(INSERT, ("held",)).lastrowid
    finally:
        engine.dispose()


def put(url: URL, texts: Sequence[str]) -> None:
    """Rows in one transaction."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for start in range(0, len(texts), 5_000):
            connection.exec_driver_sql(INSERT, [(text,) for text in texts[start : start + 5_000]])
    engine.dispose()
