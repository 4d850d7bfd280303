"""The whole process on real PostgreSQL, MariaDB and broker: what goes in comes out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from sqlalchemy import URL

from msgexchange.broker.reader import StoredRecord, TopicReader
from msgexchange.demo.departures import TIMEZONE, published_day
from msgexchange.demo.feed import Send, build_feed
from servers.production import Environment
from servers.site import Site, running_site

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.mysql,
    pytest.mark.kafka,
    pytest.mark.process,
]
MESSAGES = 600
KILLS = 6


class Owner:
    """The airport's side of the mailbox: writes rows, and rolls some back."""

    def __init__(self, url: URL) -> None:
        self._connection = pymysql.connect(
            host=url.host,
            port=url.port or 3306,
            user=url.username,
            database=url.database,
            charset="utf8mb4",
        )

    def write(self, body: str) -> None:
        self._insert(body)
        self._connection.commit()

    def roll_back(self) -> None:
        self._insert("never seen")
        self._connection.rollback()

    def marked(self) -> tuple[int, int]:
        """Rows with the processed mark, rows in all."""
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT SUM(PROC_FLAG = 'Y'), COUNT(*) FROM CMINMSGS")
            marked, rows = cursor.fetchone() or (0, 0)
        self._connection.commit()
        return int(marked or 0), int(rows)

    def close(self) -> None:
        self._connection.close()

    def _insert(self, body: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO CMINMSGS (MSG_TEXT, RECV_TIME) VALUES (%s, NOW(3))", (body,)
            )


@pytest.fixture
def owner(owned_mailbox: URL) -> Iterator[Owner]:
    owner = Owner(owned_mailbox)
    yield owner
    owner.close()


@pytest.fixture
def settings(production_settings: Environment) -> Environment:
    return {
        **production_settings,
        "MSGEXCHANGE_SITE__TIMEZONE": TIMEZONE,
        "MSGEXCHANGE_PIPELINE__MAX_COMMIT_DELAY": "1 s",
        "MSGEXCHANGE_PIPELINE__BACKOFF": "20 ms",
        "MSGEXCHANGE_SCHD__FLUSH_PERIOD": "300 ms",
    }


def steps() -> list[Any]:
    return list(build_feed(published_day(), messages_max=MESSAGES).steps)


def play(owner: Owner, part: list[Any]) -> None:
    for step in part:
        if isinstance(step, Send):
            owner.write(step.text)
        else:
            owner.roll_back()


def wait_for_marks(site: Site, owner: Owner, wanted: int) -> None:
    site.wait_until(lambda: owner.marked()[0] >= wanted, f"{wanted} marks", 60)


def drained(site: Site, owner: Owner) -> bool:
    """Every row terminal, marked, and every event out."""
    marked, rows = owner.marked()
    if marked < rows:
        return False
    found = site.run("status", "--json")
    assert found.returncode == 0, found.stderr
    status = json.loads(found.stdout)
    waiting = [line for line in status["events"] if line["state"] == "PENDING"]
    return status["head"] is None and not waiting and not status["unmarked"]


def records(settings: Environment, topic: str) -> list[StoredRecord]:
    reader = TopicReader(
        settings["MSGEXCHANGE_KAFKA__BOOTSTRAP"], settings[f"MSGEXCHANGE_KAFKA__TOPIC_{topic}"]
    )
    try:
        found = list(reader.records())
    finally:
        reader.close()
    return sorted(found, key=lambda record: (record.partition, record.offset))


def rebuilt_from_schd(found: list[StoredRecord]) -> dict[str, Any]:
    """What a consumer of the compacted topic knows: the last state of each flight."""
    states: dict[str, Any] = {}
    for record in found:
        assert record.key is not None
        key = record.key.decode()
        if record.value is None:
            states.pop(key, None)
        else:
            states[key] = json.loads(record.value)["state"]
    return states


def rebuilt_from_msg(found: list[StoredRecord]) -> dict[str, Any]:
    """What a consumer of every change knows, told only in order per flight, repeats ignored."""
    states: dict[str, Any] = {}
    seen: set[str | None] = set()
    for record in found:
        if record.header("event-id") in seen:
            continue
        seen.add(record.header("event-id"))
        assert record.value is not None
        notice = json.loads(record.value)
        if notice["kind"] == "FDEL":
            states.pop(notice["flid"], None)
            continue
        state = states.setdefault(notice["flid"], {})
        changes = notice["changes"]
        state.update(changes["set"])
        state.update(changes["replaced"])
        for name in changes["cleared"]:
            del state[name]
    return states


def active_flights(site: Site) -> dict[str, Any]:
    status, page = site.get("/all/flights?limit=10000")
    assert status == 200
    return {flight["flid"]: flight["state"] for flight in page["flights"]}


def test_a_consumer_rebuilds_every_flight_from_either_topic(
    tmp_path: Path, owner: Owner, settings: Environment
) -> None:
    with running_site(tmp_path / "site", settings) as site:
        play(owner, steps())
        site.wait_until(lambda: drained(site, owner), "everything is through", 60)
        flights = active_flights(site)
        assert len(flights) > 50
        assert rebuilt_from_schd(records(settings, "SCHD")) == flights
        assert rebuilt_from_msg(records(settings, "MSG")) == flights
        verification = site.run("verify", "--kafka")
        assert verification.returncode == 0, verification.stdout
        assert site.stop() == 0


def test_killed_at_any_moment_the_next_start_continues_and_nothing_is_lost(
    tmp_path: Path, owner: Owner, settings: Environment
) -> None:
    feed = steps()
    share = -(-len(feed) // (KILLS + 1))
    with running_site(tmp_path / "site", settings) as site:
        for number in range(KILLS):
            # Killed at a different point of its work each time: right after the rows were
            # written, or some marks later.
            play(owner, feed[number * share : (number + 1) * share])
            wait_for_marks(site, owner, number * share + (number * share) % 37)
            site.kill()
            site.start()
        play(owner, feed[KILLS * share :])
        site.wait_until(lambda: drained(site, owner), "everything is through", 90)
        verification = site.run("verify", "--kafka")
        assert verification.returncode == 0, verification.stdout
        flights = active_flights(site)
        assert rebuilt_from_schd(records(settings, "SCHD")) == flights
        assert rebuilt_from_msg(records(settings, "MSG")) == flights
        assert site.stop() == 0
