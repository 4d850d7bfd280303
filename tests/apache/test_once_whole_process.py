"""The whole process with production's default delivery: killed, restarted, read back once."""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pymysql
import pytest
from confluent_kafka import Producer
from sqlalchemy import URL

from msgexchange.broker.reader import StoredRecord, TopicReader
from msgexchange.demo.departures import TIMEZONE, published_day
from msgexchange.demo.feed import Send, build_feed
from servers.broker import BrokerServer
from servers.production import Environment
from servers.site import Site, running_site

pytestmark = [pytest.mark.apache_kafka, pytest.mark.postgres, pytest.mark.mysql]
MESSAGES = int(os.environ.get("MSGEXCHANGE_TEST_MESSAGES", "500"))
KILLS = int(os.environ.get("MSGEXCHANGE_TEST_PROCESS_KILLS", "4"))


@pytest.fixture
def settings(
    tmp_path: Path, production_settings: Environment, apache_kafka: BrokerServer
) -> Environment:
    """Production as it comes: exactly-once is its default."""
    given = {
        **production_settings,
        "MSGEXCHANGE_KAFKA__BOOTSTRAP": apache_kafka.bootstrap,
        "MSGEXCHANGE_SITE__TIMEZONE": TIMEZONE,
        "MSGEXCHANGE_PIPELINE__MAX_COMMIT_DELAY": "1 s",
        "MSGEXCHANGE_PIPELINE__BACKOFF": "20 ms",
        "MSGEXCHANGE_SCHD__FLUSH_PERIOD": "200 ms",
    }
    del given["MSGEXCHANGE_KAFKA__DELIVERY"]
    # The tests' databases are copies of one template, and a copied store needs an id of its own.
    folder = tmp_path / "copied"
    folder.mkdir()
    renamed = Site(folder, given).run("store", "new-id", "--by", "test", "--reason", "copied")
    assert renamed.returncode == 0, renamed.stderr
    return given


@pytest.fixture
def mailbox(owned_mailbox: URL) -> Iterator[Any]:
    connection = pymysql.connect(
        host=owned_mailbox.host,
        port=owned_mailbox.port or 3306,
        user=owned_mailbox.username,
        database=owned_mailbox.database,
        charset="utf8mb4",
    )
    yield connection
    connection.close()


def write(mailbox: Any, texts: list[str]) -> None:
    with mailbox.cursor() as cursor:
        for body in texts:
            cursor.execute(
                "INSERT INTO CMINMSGS (MSG_TEXT, RECV_TIME) VALUES (%s, NOW(3))", (body,)
            )
            mailbox.commit()


def marked(mailbox: Any) -> tuple[int, int]:
    with mailbox.cursor() as cursor:
        cursor.execute("SELECT SUM(PROC_FLAG = 'Y'), COUNT(*) FROM CMINMSGS")
        done, rows = cursor.fetchone()
    mailbox.commit()
    return int(done or 0), int(rows)


def has_marked(mailbox: Any, wanted: int) -> bool:
    return marked(mailbox)[0] >= wanted


def is_drained(site: Site, mailbox: Any) -> bool:
    done, rows = marked(mailbox)
    if done < rows:
        return False
    found = site.run("status", "--json")
    return found.returncode == 0 and '"PENDING"' not in found.stdout


def records(settings: Environment, name: str) -> list[StoredRecord]:
    reader = TopicReader(
        settings["MSGEXCHANGE_KAFKA__BOOTSTRAP"], settings[f"MSGEXCHANGE_KAFKA__TOPIC_{name}"]
    )
    try:
        return list(reader.records())
    finally:
        reader.close()


def assert_once_and_in_order(found: list[StoredRecord]) -> None:
    per_key: dict[bytes | None, list[tuple[int, int]]] = defaultdict(list)
    for record in found:
        number = int((record.header("event-id") or "").partition("-")[2])
        per_key[record.key].append((record.offset, number))
    times = Counter(number for ids in per_key.values() for _, number in ids)
    assert max(times.values()) == 1
    for ids in per_key.values():
        numbers = [number for _, number in sorted(ids)]
        assert numbers == sorted(numbers)


@pytest.mark.timeout(240 + 30 * KILLS)
def test_a_killed_process_repeats_nothing_and_loses_nothing(
    tmp_path: Path, mailbox: Any, settings: Environment
) -> None:
    feed = build_feed(published_day(), messages_max=MESSAGES)
    texts = [step.text for step in feed.steps if isinstance(step, Send)]
    share = -(-len(texts) // (KILLS + 1))
    with running_site(tmp_path / "site", settings) as site:
        for number in range(KILLS):
            write(mailbox, texts[number * share : (number + 1) * share])
            wanted = number * share + (number * share) % 37
            site.wait_until(partial(has_marked, mailbox, wanted), "marks", 60)
            site.kill()
            site.start()
        write(mailbox, texts[KILLS * share :])
        site.wait_until(lambda: is_drained(site, mailbox), "everything is through", 90)
        for topic in ("MSG", "SCHD"):
            assert_once_and_in_order(records(settings, topic))
        verification = site.run("verify", "--kafka")
        assert verification.returncode == 0, verification.stdout
        key = plant_a_repeat_and_a_stranger(settings)
        verification = site.run("verify", "--kafka", "--json")
        assert verification.returncode == 1
        broken = json.loads(verification.stdout)["violations"]
        assert {name for name, found in broken.items() if found} == {"I5", "I12"}
        assert any("comes again" in text for text in broken["I5"])
        assert broken["I12"] == [f"flight {key} has another state than its last value"]
        assert site.stop() == 0


def plant_a_repeat_and_a_stranger(settings: Environment) -> str:
    """The last msg record once more, and on schd a state that nobody committed; whose it is."""
    producer = Producer({"bootstrap.servers": settings["MSGEXCHANGE_KAFKA__BOOTSTRAP"]})
    again = records(settings, "MSG")[-1]
    topic = settings["MSGEXCHANGE_KAFKA__TOPIC_MSG"]
    producer.produce(
        topic, again.value, again.key, partition=again.partition, headers=list(again.headers)
    )
    state = next(record for record in reversed(records(settings, "SCHD")) if record.value)
    value = b'{"state":{"FLNO":"nobody"}}'
    topic = settings["MSGEXCHANGE_KAFKA__TOPIC_SCHD"]
    producer.produce(
        topic, value, state.key, partition=state.partition, headers=list(state.headers)
    )
    assert producer.flush(10) == 0
    return (state.key or b"").decode()


def test_people_raise_the_generation_and_look_at_dead_events(
    tmp_path: Path, mailbox: Any, settings: Environment
) -> None:
    feed = build_feed(published_day(), messages_max=100)
    write(mailbox, [step.text for step in feed.steps if isinstance(step, Send)])
    with running_site(tmp_path / "site", settings) as site:
        site.wait_until(lambda: is_drained(site, mailbox), "everything is through", 60)
        grown = site.run("store", "new-generation", "--by", "test", "--reason", "drill")
        assert grown.returncode == 0, grown.stderr
        assert "generation 2" in grown.stdout
        assert site.run("dead", "--events").returncode == 0
        refused = site.run("redeliver", "1", "--by", "test", "--reason", "drill")
        assert refused.returncode == 1
        assert "is not dead" in refused.stderr
