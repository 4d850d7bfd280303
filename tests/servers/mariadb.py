"""A private MariaDB from the distribution's package, or the server MSGEXCHANGE_TEST_MYSQL names."""

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from servers.private import PrivateProcess, free_port, missing_server

HOW_TO_GET = "install the packages mariadb-server-core and mariadb-client-core, or set MSGEXCHANGE_TEST_MYSQL=mysql://USER@HOST/"


class MariadbServer:
    """``url`` names no database; ``process`` is None for a server that is not ours to stop."""

    def __init__(self, url: URL, process: PrivateProcess | None) -> None:
        self.url = url.set(drivername="mysql+pymysql")
        self.host = url.host or "127.0.0.1"
        self.port = url.port or 3306
        self._process = process

    def execute(self, statement: str) -> None:
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.execute(text(statement))
        finally:
            engine.dispose()

    def answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except DBAPIError:
            return False
        return True

    def start(self) -> None:
        self._own().start()

    def stop(self) -> None:
        self._own().stop()

    def kill(self) -> None:
        self._own().kill()

    def pause(self) -> None:
        self._own().pause()

    def resume(self) -> None:
        self._own().resume()

    def _own(self) -> PrivateProcess:
        if self._process is None:
            pytest.skip("the server of MSGEXCHANGE_TEST_MYSQL is not the tests' to stop")
        return self._process


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariadbServer]:
    foreign = os.environ.get("MSGEXCHANGE_TEST_MYSQL")
    if foreign:
        yield MariadbServer(make_url(foreign), None)
        return
    daemon = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    installer = shutil.which("mariadb-install-db")
    if daemon is None or installer is None:
        missing_server(f"no MariaDB server: {HOW_TO_GET}")
    assert daemon is not None
    assert installer is not None
    home = _home()
    port = free_port()
    _install(installer, home)
    url = URL.create("mysql", username="root", host="127.0.0.1", port=port)
    server = MariadbServer(url, None)
    process = PrivateProcess(
        [
            daemon,
            *_options(home),
            f"--socket={home / 'socket'}",
            f"--pid-file={home / 'pid'}",
            "--bind-address=127.0.0.1",
            f"--port={port}",
            "--max-allowed-packet=80M",
        ],
        log=home / "log",
        answers=server.answers,
        name="MariaDB",
    )
    process.start()
    try:
        yield MariadbServer(url, process)
    finally:
        process.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def mailbox_database(mariadb_server: MariadbServer) -> Iterator[URL]:
    """A fresh, empty database."""
    name = f"mailbox_{uuid.uuid4().hex[:12]}"
    mariadb_server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield mariadb_server.url.set(database=name)
    mariadb_server.execute(f"DROP DATABASE {name}")


def _install(installer: str, home: Path) -> None:
    subprocess.run(
        [
            installer,
            *_options(home),
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )


def _home() -> Path:
    """A folder of its own: pytest's are closed to the user the server runs as under root."""
    home = Path(tempfile.mkdtemp(prefix="msgexchange-mariadb-"))
    home.chmod(0o711)
    if os.geteuid() == 0:
        shutil.chown(home, _user())
    return home


def _user() -> str:
    """Who the server runs as: under root ``mysql`` where the package made that user."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "mysql" if os.geteuid() == 0 and "mysql" in names else getpass.getuser()


def _options(home: Path) -> list[str]:
    user = [f"--user={_user()}"] if os.geteuid() == 0 else []
    return [
        "--no-defaults",
        *user,
        f"--datadir={home / 'data'}",
        "--skip-name-resolve",
        "--innodb-log-file-size=16M",
        "--innodb-buffer-pool-size=64M",
    ]
