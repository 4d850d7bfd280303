"""A position that is lost, foreign, forgotten or of a restored store: what a publisher does."""

import os
import shutil
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from msgexchange.broker.position import PositionReader
from msgexchange.clock import SystemClock
from msgexchange.flight.events import Target
from msgexchange.ids import EventId
from msgexchange.lifecycle.position import Position
from msgexchange.ports import DeliveryStopped
from servers.apache_kafka import start_node
from servers.publisher import POSITIONS, Line, open_store, take_lead
from servers.publishing import World, drain, new_world, turn

pytestmark = pytest.mark.apache_kafka

SOAK = os.environ.get("MSGEXCHANGE_TEST_SOAK")
MSG, SCHD = Target.MSG, Target.SCHD


def forget_position(world: World, line: Line, target: Target) -> None:
    admin = AdminClient({"bootstrap.servers": world.bootstrap})
    group = line.group(target)
    admin.delete_consumer_groups([group])[group].result(10)


def committed(world: World, line: Line, target: Target) -> Position | None:
    reader = PositionReader(
        world.bootstrap, POSITIONS, group=line.group(target), settings={}, round_trip_timeout_s=5
    )
    return reader.read()


def test_after_a_lost_position_the_stores_own_record_counts(world: World) -> None:
    world.append(10)
    first = world.line()
    drain(first)
    for target in (MSG, SCHD):
        forget_position(world, first, target)
    world.append(10)
    again = world.line()
    drain(again)
    assert again.told.alerts.count("delivery-position") == 2
    world.assert_each_event_once()


def test_a_restored_store_stands_still_until_it_says_so(world: World, tmp_path: Path) -> None:
    world.append(10)
    drain(world.line())
    backup = tmp_path / "backup.sqlite"
    _back_up(world, backup)
    world.append(5)
    drain(world.line())
    on_topic = {target: world.ids(target) for target in (MSG, SCHD)}
    restored = _restore(world, backup)
    # The pump runs on before Kafka is looked at: other events get the numbers that are out there.
    restored.written = 50
    restored.append(8)
    line = restored.line()
    for step in (line.dispatch(), line.flush()):
        with pytest.raises(DeliveryStopped, match="new-generation"):
            step.step()
    line.close()
    assert {target: restored.ids(target) for target in (MSG, SCHD)} == on_topic
    info = restored.store.acts.new_generation(
        above=0, by="test", reason="restored", now=SystemClock().now()
    )
    assert info.generation == 2
    drain(restored.line())
    fresh = [r for r in restored.records(MSG) if (r.header("event-id") or "").startswith("2-")]
    assert len(fresh) == 8
    restored.close()


def test_a_store_restored_to_where_the_topic_stands_goes_on_by_itself(
    world: World, tmp_path: Path
) -> None:
    world.append(10)
    line = world.line()
    dispatch = line.dispatch()
    turn(dispatch)
    backup = tmp_path / "backup.sqlite"
    _back_up(world, backup)
    line.close()
    restored = _restore(world, backup)
    drain(restored.line())
    restored.assert_each_event_once()
    restored.close()


def test_a_store_restored_to_before_a_flush_repeats_no_state(world: World, tmp_path: Path) -> None:
    world.append(10)
    backup = tmp_path / "backup.sqlite"
    _back_up(world, backup)
    drain(world.line())
    on_topic = {target: world.ids(target) for target in (MSG, SCHD)}
    restored = _restore(world, backup)
    line = restored.line()
    # On msg the position names the last of those that went out; a flush's others nobody knows.
    turn(line.dispatch())
    with pytest.raises(DeliveryStopped, match="new-generation"):
        line.flush().step()
    line.close()
    assert {target: restored.ids(target) for target in (MSG, SCHD)} == on_topic
    restored.store.acts.new_generation(
        above=0, by="test", reason="restored", now=SystemClock().now()
    )
    drain(restored.line())
    assert restored.ids(MSG) == on_topic[MSG]
    fresh = [r for r in restored.records(SCHD) if (r.header("event-id") or "").startswith("2-")]
    assert len(fresh) == 5
    restored.close()


def _back_up(world: World, to: Path) -> None:
    with world.store.engine.begin() as connection:
        connection.exec_driver_sql("SELECT 1")
    world.store.close()
    shutil.copy(world.folder / "store.sqlite", to)


def _restore(world: World, backup: Path) -> World:
    world.store.close()
    folder = world.folder / "restored"
    folder.mkdir()
    shutil.copy(backup, folder / "store.sqlite")
    store = open_store(str(folder / "store.sqlite"))
    return World(folder, world.bootstrap, store, world.topics)


def test_a_position_of_another_store_stops_the_target(world: World) -> None:
    world.append(3)
    line = world.line()
    _commit_offset(
        world,
        line.group(MSG),
        Position(store_id="another", generation=1, event_id=EventId(9), nonce=9).encode(),
    )
    with pytest.raises(DeliveryStopped, match="belongs to store another"):
        line.dispatch().step()
    line.close()
    assert world.ids(MSG) == []


def test_an_offset_that_is_not_ours_stops_the_target(world: World) -> None:
    world.append(3)
    line = world.line()
    _commit_offset(world, line.group(MSG), "")
    with pytest.raises(DeliveryStopped, match="not msgexchange's"):
        line.dispatch().step()
    line.close()
    assert world.ids(MSG) == []


def _commit_offset(world: World, group: str, metadata: str) -> None:
    consumer = Consumer({"bootstrap.servers": world.bootstrap, "group.id": group})
    offset = TopicPartition(POSITIONS, 0, 9, metadata=metadata)
    consumer.commit(offsets=[offset], asynchronous=False)
    consumer.close()


def test_a_consumer_in_the_positions_group_stops_the_target(world: World) -> None:
    world.append(3)
    line = world.line()
    consumer = Consumer({"bootstrap.servers": world.bootstrap, "group.id": line.group(MSG)})
    consumer.subscribe([POSITIONS])
    for _ in range(100):
        consumer.poll(0.1)
        if consumer.assignment():
            break
    with pytest.raises(DeliveryStopped, match="members of group"):
        line.dispatch().step()
    consumer.close()
    drain(line)
    world.assert_each_event_once()


def test_two_instances_on_one_cluster_share_nothing(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = new_world(tmp_path_factory.mktemp("other"), world.bootstrap)
    other.create_topics()
    lines = [world.line(), other.line()]
    steps: list[Any] = [step for line in lines for step in (line.dispatch(), line.flush())]
    for _ in range(4):
        world.append(10, flights=9)
        other.append(10, flights=9)
        for line in lines:
            # Appending takes the lead; the steps go on under the newest fence.
            line.fence = take_lead(line.store)
        for step in steps:
            step._fence = step._publishing._is.fence
    with closing(other):
        drain(lines[0])
        drain(lines[1])
        world.assert_each_event_once()
        other.assert_each_event_once()


def test_an_idle_target_commits_its_position_again(world: World) -> None:
    world.append(3)
    line = world.line()
    dispatch = line.dispatch(recommit_after=timedelta(seconds=0))
    turn(dispatch)
    published = committed(world, line, MSG)
    forget_position(world, line, MSG)
    assert committed(world, line, MSG) is None
    dispatch.step()
    assert committed(world, line, MSG) == published
    line.close()
    assert len(world.ids(MSG)) == 3


@pytest.mark.skipif(not SOAK, reason="takes two minutes: set MSGEXCHANGE_TEST_SOAK")
@pytest.mark.timeout(300)
def test_an_idle_target_keeps_its_position_beyond_the_brokers_retention(tmp_path: Path) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    server, _ = start_node(folder, retention_minutes=1)
    try:
        world = new_world(tmp_path, server.bootstrap)
        world.create_topics()
        world.append(3)
        line = world.line()
        dispatch = line.dispatch(recommit_after=timedelta(seconds=20))
        flush = line.flush(recommit_after=timedelta(days=1))
        clock = SystemClock()
        until = clock.monotonic() + 100
        while clock.monotonic() < until:
            turn(dispatch)
            turn(flush)
            time.sleep(1)
        assert committed(world, line, MSG) is not None
        assert committed(world, line, SCHD) is None, "without it the broker forgets"
        line.close()
    finally:
        server.kill()
