"""A broker that is away, slow or without its topics: nobody is charged, nothing comes twice."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from msgexchange.broker.position import PositionReader
from msgexchange.broker.settings import TRANSACTION_TIMEOUT_S
from msgexchange.clock import SystemClock
from msgexchange.flight.events import Target
from msgexchange.ports import Superseded, Unavailable
from servers.broker import BrokerServer
from servers.publishing import CHILD_S_MAX, World, drain, new_world, turn, wait_until_stopped

pytestmark = pytest.mark.apache_kafka

OUTAGE_S = float(os.environ.get("MSGEXCHANGE_TEST_OUTAGE_S", "2"))
STUTTER_S = 0.5
BROKER_LOOKS_S = 3
"""How often the node looks for transactions whose time is over, and a little."""
MSG = Target.MSG


@pytest.mark.parametrize("way", ["stopped", "killed"])
@pytest.mark.timeout(120 + 3 * OUTAGE_S)
def test_a_broker_that_comes_back_costs_no_attempt_and_no_event(
    world: World, apache_kafka: BrokerServer, way: str
) -> None:
    world.append(30, flights=25)
    line = world.line()
    dispatch, flush = line.dispatch(), line.flush()
    turn(dispatch)
    turn(flush)
    if way == "stopped":
        apache_kafka.stop()
    else:
        apache_kafka.kill()
    clock = SystemClock()
    until_s = clock.monotonic() + OUTAGE_S
    tried = 0
    while tried == 0 or clock.monotonic() < until_s:
        for step in (dispatch, flush):
            with pytest.raises(Unavailable):
                step.step()
        tried += 1
        time.sleep(0.1)
    apache_kafka.start()
    line.close()
    drain(line)
    world.assert_each_event_once()
    assert world.errors() == []


def test_a_broker_that_answers_by_fits_and_starts_costs_no_attempt_and_no_event(
    world: World, apache_kafka: BrokerServer
) -> None:
    world.append(60, flights=40)
    line = world.line()
    with stuttering(apache_kafka):
        drain(line, give_up_after_s=200)
    world.assert_each_event_once()
    assert world.errors() == []


@contextmanager
def stuttering(server: BrokerServer) -> Iterator[None]:
    """Frozen nine tenths of the time; now and then for longer than a round trip may take."""
    # Not ours to freeze: said here, not in the thread.
    server.resume()
    ends = threading.Event()

    def stutter() -> None:
        for turn_ in count():
            server.pause()
            ends.wait(STUTTER_S * (8 if turn_ % 7 == 6 else 1))
            server.resume()
            if ends.wait(STUTTER_S / 9):
                return

    thread = threading.Thread(target=stutter)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def test_a_transaction_that_expired_while_we_slept_is_begun_anew(
    tmp_path: Path, apache_kafka: BrokerServer
) -> None:
    children = []
    for point in ("msg:produced", "msg:offsets-sent", "schd:offsets-sent"):
        folder = tmp_path / point.replace(":", "-")
        folder.mkdir()
        world = new_world(folder, apache_kafka.bootstrap)
        world.create_topics()
        world.append(20, flights=15)
        children.append((world, world.child(point, 2, signal_=signal.SIGSTOP)))
    for _, child in children:
        wait_until_stopped(child.pid)
    time.sleep(TRANSACTION_TIMEOUT_S + BROKER_LOOKS_S)
    for world, child in children:
        with child:
            child.send_signal(signal.SIGCONT)
            # Nobody else took the lead: it goes on by itself.
            said, _ = child.communicate(timeout=CHILD_S_MAX)
            assert child.returncode == 0
            assert len(said.splitlines()) > 1, "the broker did not end its transaction"
        world.assert_each_event_once()
        assert world.errors() == []
        world.close()


def test_a_broker_that_hangs_in_a_window_costs_no_attempt_and_no_event(
    world: World, apache_kafka: BrokerServer
) -> None:
    world.append(12, flights=12)
    line = world.line()
    dispatch = line.dispatch()
    turn(dispatch)
    apache_kafka.pause()
    clock = SystemClock()
    began = clock.monotonic()
    with pytest.raises((Unavailable, Superseded)):
        dispatch.step()
    took_s = clock.monotonic() - began
    apache_kafka.resume()
    drain(line)
    world.assert_each_event_once()
    assert took_s < 45, "a step must end before the watchdog's bound"
    assert world.errors() == []


def test_a_missing_topic_is_named_and_waited_for(
    tmp_path: Path, apache_kafka: BrokerServer
) -> None:
    world = new_world(tmp_path, apache_kafka.bootstrap)
    world.append(3)
    line = world.line()
    with pytest.raises(Unavailable, match=world.topic(MSG)):
        line.dispatch().step()
    world.create_topics()
    drain(line)
    world.assert_each_event_once()
    world.close()


def test_a_topic_deleted_under_way_is_named_and_waited_for(world: World) -> None:
    world.append(20, flights=9)
    line = world.line()
    dispatch = line.dispatch()
    turn(dispatch)
    gone = len(world.ids(MSG))
    admin = AdminClient({"bootstrap.servers": world.bootstrap})
    admin.delete_topics([world.topic(MSG)])[world.topic(MSG)].result(10)
    with pytest.raises(Unavailable):
        dispatch.step()
    with pytest.raises(Unavailable, match=world.topic(MSG)):
        dispatch.step()
    world.create_topics()
    drain(line)
    assert sorted(world.ids(MSG)) == list(range(1 + 2 * gone, 41, 2))
    assert world.errors() == []


def test_a_missing_position_topic_is_named_with_what_to_do(world: World) -> None:
    world.append(1)
    reader = PositionReader(
        world.bootstrap, "no-such-topic", group="g", settings={}, round_trip_timeout_s=5
    )
    with pytest.raises(Unavailable, match=r"no-such-topic.*one partition"):
        reader.read()
