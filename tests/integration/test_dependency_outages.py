"""Outages of each dependency and of all: nothing is charged, work resumes at once (spec 3.3).

MSGEXCHANGE_SOAK_OUTAGE_S=600 makes them ten minutes long.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msgexchange.clock import SystemClock
from servers.airport import Airport, everything_is_through
from servers.broker import BrokerServer
from servers.mariadb import MariadbServer
from servers.postgres import PostgresServer
from servers.production import Environment
from servers.site import Site, running_site
from servers.waiting import sleep

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.mysql,
    pytest.mark.kafka,
    pytest.mark.process,
    pytest.mark.timeout(3_600),
]
OUTAGE_S = float(os.environ.get("MSGEXCHANGE_SOAK_OUTAGE_S", "9"))
"""Tries of one that is down fall to 0, 1, 3, 7, 15 s: whoever resumes at 9 s was nudged."""
RESUME_S_MAX = 5.0
ALL = ("store", "mailbox", "broker")


@pytest.mark.parametrize("down", [("store",), ("mailbox",), ("broker",), ALL], ids="+".join)
def test_an_outage_charges_nobody_and_work_resumes_within_five_seconds(
    down: tuple[str, ...],
    tmp_path: Path,
    real_settings: Environment,
    airport: Airport,
    postgres_server: PostgresServer,
    mariadb_server: MariadbServer,
    broker_server: BrokerServer,
) -> None:
    store = postgres_server.own_process()
    # The broker keeps its topics in memory: it is frozen, the others are stopped.
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
    clock = SystemClock()
    settings = {**real_settings, "MSGEXCHANGE_KAFKA__MESSAGE_TIMEOUT": "2 s"}
    with running_site(tmp_path, settings) as site:
        everything_is_through(site, airport)
        for name in down:
            ends[name]()
        began_s = clock.monotonic()
        try:
            if "mailbox" not in down:
                airport.change(3)
            site.wait_until(lambda: outages(site) >= set(down), "the outage is told", 20)
            sleep(max(OUTAGE_S - (clock.monotonic() - began_s), 0))
            assert site.runs
            told = health(site)
            for name in down:
                assert told["dependencies"][name]["since"] is not None
            waited_for = {breaker["dependency"] for breaker in told["breakers"].values()}
            if "store" not in down:
                assert waited_for == set(down)
            assert_status_tells(site, set(down), waited_for)
        finally:
            for name in reversed(down):
                begins[name]()
        back_s = clock.monotonic()
        if "mailbox" in down:
            airport.reconnect()
            airport.change(3)
        site.wait_until(lambda: is_sent(site, airport.last_id), "it resumes", 30)
        took_s = clock.monotonic() - back_s
        everything_is_through(site, airport)
        assert took_s <= RESUME_S_MAX
        assert attempts(site, airport.last_id) == 0


def assert_status_tells(site: Site, down: set[str], waited_for: set[str]) -> None:
    """``run.py status`` says what is down and since when, the own database included."""
    answer = site.run("status")
    assert (answer.returncode == 0) == ("store" not in down)
    for name in down:
        assert re.search(rf"^\W*{name}\W+20\d\d-", answer.stdout, re.MULTILINE), answer.stdout
    for name in waited_for:
        assert re.search(rf"\b{name}\W+20\d\d-.+ \d+ ", answer.stdout), answer.stdout
    breakers = health(site)["breakers"]
    for actor, breaker in breakers.items():
        labels = f'{{actor="{actor}",dependency="{breaker["dependency"]}"}}'
        seconds = site.metric(f"msgexchange_breaker_open_seconds{labels}")
        assert seconds is not None
        assert seconds > 0


def health(site: Site) -> Any:
    return site.get("/health/ready")[1]


def outages(site: Site) -> set[str]:
    """What its own probes find gone."""
    told = health(site)
    return {name for name, one in told["dependencies"].items() if not one["ok"]}


def is_sent(site: Site, id_: int) -> bool:
    """The message is terminal and its events are on the broker."""
    status, message = site.get(f"/messages/{id_}")
    return (
        status == 200
        and message["finishedAt"] is not None
        and all(event["state"] in {"SENT", "SUPERSEDED"} for event in message["events"])
    )


def attempts(site: Site, last_id: int) -> int:
    """Charged attempts of all messages."""
    return sum(site.message(id_)["attempts"] for id_ in range(1, last_id + 1))
