"""A process that starts before the servers it needs waits for them; wrong settings end it (6.1)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import make_url

from factories import plan
from servers.airport import Airport, everything_is_through
from servers.broker import BrokerServer
from servers.mariadb import MariadbServer
from servers.postgres import PostgresServer
from servers.production import Environment
from servers.site import Site

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.mysql,
    pytest.mark.kafka,
    pytest.mark.process,
]


@pytest.mark.parametrize(
    "down", [("store",), ("mailbox",), ("store", "mailbox", "broker")], ids="+".join
)
def test_a_process_that_starts_first_tells_what_it_waits_for_and_begins_once_it_is_there(
    down: tuple[str, ...],
    tmp_path: Path,
    real_settings: Environment,
    airport: Airport,
    postgres_server: PostgresServer,
    mariadb_server: MariadbServer,
    broker_server: BrokerServer,
) -> None:
    store = postgres_server.own_process()
    ends: dict[str, Callable[[], None]] = {
        "store": store.stop,
        "mailbox": mariadb_server.stop,
        "broker": broker_server.pause,
    }
    begins: dict[str, Callable[[], None]] = {
        "store": store.start,
        "mailbox": mariadb_server.start,
        "broker": broker_server.resume,
    }
    site = Site(tmp_path, real_settings)
    for name in down:
        ends[name]()
    missing = list(down)
    try:
        site.begin()
        site.wait_for_url()
        site.wait_until(lambda: outages(site) == set(down), "health tells what is down")
        assert site.get("/health/ready")[0] == 503
        assert site.get("/health/live")[0] == 200
        if "store" in down:
            code, why = site.send(plan("1").encode())
            assert code == 503
            assert "nothing was stored" in why
        while missing:
            begins[missing.pop(0)]()
        site.wait_until(lambda: site.get("/health/ready")[0] == 200, "it is ready")
        if "mailbox" in down:
            airport.reconnect()
        airport.change(3)
        everything_is_through(site, airport)
        assert site.stop() == 0
    finally:
        for name in missing:
            begins[name]()
        site.kill()


def outages(site: Site) -> set[str]:
    told = site.get("/health/ready")[1]
    return {name for name, one in told["dependencies"].items() if not one["ok"]}


def test_a_process_that_waits_for_its_database_ends_in_order(
    tmp_path: Path, real_settings: Environment, postgres_server: PostgresServer
) -> None:
    store = postgres_server.own_process()
    store.stop()
    site = Site(tmp_path, real_settings)
    try:
        site.begin()
        site.wait_for_url()
        assert site.stop() == 0
        assert "start-waits" in site.log
    finally:
        store.start()
        site.kill()


@pytest.mark.parametrize(
    ("key", "change", "says"),
    [
        ("STORE", {"database": "nowhere"}, 'database "nowhere" does not exist'),
        ("STORE", {"username": "nobody-we-know"}, 'role "nobody-we-know" does not exist'),
        ("MAILBOX", {"database": "nowhere"}, "Unknown database 'nowhere'"),
        ("MAILBOX", {"username": "nobody", "password": "x"}, "Access denied"),
    ],
)
def test_a_server_that_lets_us_not_in_is_a_wrong_setting_and_told_at_once(
    key: str,
    change: dict[str, str],
    says: str,
    tmp_path: Path,
    real_settings: Environment,
) -> None:
    name = f"MSGEXCHANGE_{key}__URL"
    wrong = make_url(real_settings[name]).set(**change)  # type: ignore[arg-type]
    site = Site(tmp_path, {**real_settings, name: wrong.render_as_string(hide_password=False)})
    try:
        site.begin()
        assert site.exit_status() == 2
        assert f"{key.lower()}.url (env {name}): " in site.log
        assert says in site.log
    finally:
        site.kill()


def test_a_schema_that_is_not_of_this_version_is_told_at_once(
    tmp_path: Path, real_settings: Environment, empty_postgres_database: str
) -> None:
    site = Site(tmp_path, {**real_settings, "MSGEXCHANGE_STORE__URL": empty_postgres_database})
    try:
        site.begin()
        assert site.exit_status() == 2
        assert "run.py store upgrade" in site.log
    finally:
        site.kill()
