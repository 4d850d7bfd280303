"""A site of its own for every round: fresh databases and topics on the servers."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

import psycopg
from psycopg import sql
from sqlalchemy import URL

from msgexchange.bench.servers import Servers, dsn, mysql_connection
from msgexchange.clock import SystemClock
from msgexchange.pipeline.step import Step
from msgexchange.store.engine import open_engine
from msgexchange.store.schema import upgrade
from msgexchange.store.sql_store import SqlStore

MAILBOX = """
CREATE TABLE CMINMSGS (
  CMINMSGS_ID BIGINT AUTO_INCREMENT PRIMARY KEY,
  MSG_TEXT LONGTEXT CHARACTER SET utf8mb4,
  RECV_TIME DATETIME(3),
  PROC_FLAG CHAR(1) DEFAULT 'N',
  PROC_TIME DATETIME(3) NULL
) ENGINE=InnoDB
"""
ROWS_AT_ONCE = 500


class WrongResult(Exception):
    """What was measured is not what should have happened, so that its figure means nothing."""


def require(truth: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence
    """``WrongResult`` unless it is true."""
    if not truth:
        raise WrongResult(what)


@dataclass(frozen=True, slots=True)
class Site:
    """Where one round's mailbox, store and topics are."""

    store: URL
    mailbox: URL
    bootstrap: str
    topics: str
    """What the names of the site's topics end with."""

    @property
    def msg_topic(self) -> str:
        return f"msg-{self.topics}"

    @property
    def schd_topic(self) -> str:
        return f"schd-{self.topics}"

    @property
    def environment(self) -> Mapping[str, str]:
        """The site's settings, as a process reads them."""
        return {
            "MSGEXCHANGE_PROFILE": "production",
            "MSGEXCHANGE_STORE__URL": dsn(self.store),
            "MSGEXCHANGE_MAILBOX__URL": self.mailbox.set(drivername="mysql").render_as_string(
                hide_password=False
            ),
            "MSGEXCHANGE_MAILBOX__PROCESSED_VALUE": "Y",
            "MSGEXCHANGE_MAILBOX__START_AFTER": "0",
            "MSGEXCHANGE_HISTORY__STORE": "none",
            "MSGEXCHANGE_KAFKA__BOOTSTRAP": self.bootstrap,
            "MSGEXCHANGE_KAFKA__TOPIC_MSG": self.msg_topic,
            "MSGEXCHANGE_KAFKA__TOPIC_SCHD": self.schd_topic,
            "MSGEXCHANGE_KAFKA__CREATE_TOPICS": "true",
            "MSGEXCHANGE_KAFKA__DELIVERY": "at-least-once",
            "MSGEXCHANGE_REQUESTS__ACCEPT_FOREIGN": "true",
            "MSGEXCHANGE_REQUESTS__MATCH": "kind",
            "MSGEXCHANGE_HTTP__PORT": "0",
            "MSGEXCHANGE_TELEMETRY__LOG_LEVEL": "warning",
        }

    def write(self, texts: Sequence[str]) -> tuple[int, float]:
        """Put the texts into the mailbox in one transaction: the last id, and by the monotonic
        clock when the commit began that lets others see them.
        """
        connection = mysql_connection(self.mailbox)
        statement = "INSERT INTO CMINMSGS (MSG_TEXT, RECV_TIME) VALUES (%s, NOW(3))"
        try:
            with connection.cursor() as cursor:
                for start in range(0, len(texts), ROWS_AT_ONCE):
                    cursor.executemany(
                        statement, [(t,) for t in texts[start : start + ROWS_AT_ONCE]]
                    )
                cursor.execute("SELECT MAX(CMINMSGS_ID) FROM CMINMSGS")
                row = cursor.fetchone()
            began_s = SystemClock().monotonic()
            connection.commit()
        finally:
            connection.close()
        assert row is not None
        return int(row[0]), began_s


class Line(Protocol):
    """The product's steps on real adapters, to be driven one by one on one thread."""

    store: SqlStore

    def step(self, name: str) -> Step:
        """The step of the actor of that name."""
        ...


class Running(Protocol):
    """The product as it serves: actors on threads of their own."""

    @property
    def url(self) -> str: ...

    def look(self) -> None:
        """Tell the inbox that rows are there, as a message over HTTP does."""
        ...


class Product(Protocol):
    """What is measured; the composition root hands it in."""

    def line(self, site: Site) -> AbstractContextManager[Line]: ...

    def running(
        self,
        site: Site,
        *,
        batch_max: int | None = None,
        works: bool = True,
        keeps_house: bool = False,
        traces_to: str | None = None,
    ) -> AbstractContextManager[Running]:
        """``works`` False: only HTTP, no pipeline. ``keeps_house``: past flights go to history.
        ``traces_to``: a collector's address.
        """
        ...

    def violations(self, site: Site) -> Sequence[str]:
        """What ``verify --kafka`` finds wrong with a site where all is through."""
        ...


class Sites:
    """Makes sites on the servers; stores are copies of one that was migrated once."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._template = f"bench_{uuid.uuid4().hex[:12]}"
        self._create_store(self._template, "template0")
        engine = open_engine(dsn(servers.postgres.set(database=self._template)))
        try:
            upgrade(engine, store_id=self._template, identity_rule="plain")
        finally:
            engine.dispose()

    @contextmanager
    def site(self) -> Iterator[Site]:
        """A fresh one; its databases go with the block."""
        name = f"bench_{uuid.uuid4().hex[:12]}"
        self._create_store(name, self._template)
        mysql = mysql_connection(self._servers.mysql)
        try:
            with mysql.cursor() as cursor:
                cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
                cursor.execute(f"USE {name}")
                cursor.execute(MAILBOX)
            yield Site(
                store=self._servers.postgres.set(database=name),
                mailbox=self._servers.mysql.set(database=name),
                bootstrap=self._servers.bootstrap,
                topics=name,
            )
            with mysql.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")
        finally:
            mysql.close()
            self._drop_store(name)

    @contextmanager
    def store(self) -> Iterator[URL]:
        """A store alone, for a floor."""
        name = f"bench_{uuid.uuid4().hex[:12]}"
        self._create_store(name, self._template)
        try:
            yield self._servers.postgres.set(database=name)
        finally:
            self._drop_store(name)

    def close(self) -> None:
        self._drop_store(self._template)

    def _create_store(self, name: str, template: str) -> None:
        self._execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8'").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )

    def _drop_store(self, name: str) -> None:
        self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(dsn(self._servers.postgres), autocommit=True) as connection:
            connection.execute(statement)
