"""Refusals, slowness and outages: who is blamed, and what goes out past whom (spec 4.2)."""

from collections.abc import Iterator

import pytest

from fakes.mock_cluster import NO_ERROR, NOT_ALLOWED, NOT_LEADER, TOO_LARGE, MockCluster
from msgexchange.broker.producer import KafkaRecordProducer
from msgexchange.broker.reader import TopicReader
from msgexchange.broker.settings import ProducerBounds
from msgexchange.broker.topics import TopicNeed, Topics
from msgexchange.clock import SystemClock
from msgexchange.ports import Acknowledged, NotDelivered, Record, RecordRefused, Unavailable
from servers.broker import BrokerServer

BOUNDS = ProducerBounds(message_timeout_s=3, round_trip_timeout_s=1)
SHORT = ProducerBounds(message_timeout_s=1.5, round_trip_timeout_s=1)
TOPIC = "msg"
A, R, N = Acknowledged, RecordRefused, NotDelivered


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    made = MockCluster()
    made.create(TOPIC, 1)
    yield made
    made.close()


def producer_of(cluster: MockCluster, bounds: ProducerBounds = BOUNDS) -> KafkaRecordProducer:
    # A long linger: a window is one request, so that an error meets all of it.
    return KafkaRecordProducer(
        cluster.bootstrap, TOPIC, clock=SystemClock(), settings={"linger.ms": 50}, bounds=bounds
    )


def send(producer: KafkaRecordProducer, *values: str) -> list[type]:
    records = [Record(key=b"F1", value=value.encode(), headers=()) for value in values]
    return [type(answer) for answer in producer.send(records)]


def stored(bootstrap: str, topic: str = TOPIC) -> list[str]:
    reader = TopicReader(bootstrap, topic, silence_s_max=5)
    try:
        return [(record.value or b"").decode() for record in reader.records()]
    finally:
        reader.close()


def test_a_record_that_the_broker_refuses_alone_is_refused(cluster: MockCluster) -> None:
    producer = producer_of(cluster)
    cluster.answer_next_produce_requests(TOO_LARGE)
    assert send(producer, "1") == [R]
    assert send(producer, "2") == [A]
    producer.close()
    assert stored(cluster.bootstrap) == ["2"]


def test_only_the_record_to_blame_in_a_refused_batch_is_refused(cluster: MockCluster) -> None:
    producer = producer_of(cluster)
    cluster.answer_next_produce_requests(TOO_LARGE, NO_ERROR, TOO_LARGE)
    assert send(producer, "1", "2", "3") == [A, R, N]
    producer.close()
    assert stored(cluster.bootstrap) == ["1"]


def test_records_refused_only_as_a_batch_all_go_out(cluster: MockCluster) -> None:
    producer = producer_of(cluster)
    cluster.answer_next_produce_requests(TOO_LARGE)
    assert send(producer, "1", "2", "3") == [A, A, A]
    producer.close()
    assert stored(cluster.bootstrap) == ["1", "2", "3"]


def test_an_election_is_waited_out(cluster: MockCluster) -> None:
    producer = producer_of(cluster)
    cluster.answer_next_produce_requests(NOT_LEADER, NOT_LEADER)
    assert send(producer, "1", "2") == [A, A]
    producer.close()
    assert stored(cluster.bootstrap) == ["1", "2"]


def test_while_leaders_are_elected_every_record_goes_out_in_order() -> None:
    cluster = MockCluster(brokers=3)
    cluster.create(TOPIC, 1)
    producer = producer_of(cluster)
    for number in range(9):
        cluster.elect(TOPIC, 0, 1 + number % 3)
        assert send(producer, f"{number}a", f"{number}b") == [A, A]
    producer.close()
    assert stored(cluster.bootstrap) == [f"{n}{half}" for n in range(9) for half in "ab"]
    cluster.close()


def test_a_broker_that_does_not_let_us_write_blames_no_record(cluster: MockCluster) -> None:
    producer = producer_of(cluster)
    cluster.answer_next_produce_requests(NOT_ALLOWED)
    refused = producer.send([Record(key=b"F1", value=b"1", headers=())])
    assert refused == [N("TOPIC_AUTHORIZATION_FAILED: Broker: Topic authorization failed")]
    assert send(producer, "1", "2") == [A, A]
    producer.close()


def test_nothing_of_a_window_that_was_given_up_goes_out_later(cluster: MockCluster) -> None:
    producer = producer_of(cluster, SHORT)
    assert send(producer, "0") == [A]
    cluster.go_down()
    assert send(producer, "1", "2") == [N, N]
    with pytest.raises(Unavailable):
        Topics(cluster.bootstrap, round_trip_timeout_s=1).missing([])
    cluster.come_up()
    assert send(producer, "3") == [A]
    producer.close()
    assert stored(cluster.bootstrap) == ["0", "3"]


def test_a_window_under_way_when_time_is_up_is_not_delivered(cluster: MockCluster) -> None:
    producer = producer_of(cluster, SHORT)
    assert send(producer, "0") == [A]
    cluster.take_time(2500)
    assert send(producer, "1", "2") == [N, N]
    cluster.take_time(0)
    assert send(producer, "1", "2") == [A, A]
    producer.close()
    # At least once: what was under way may have landed; repeats keep the order.
    found = stored(cluster.bootstrap)
    assert found[0] == "0"
    assert found[-2:] == ["1", "2"]
    assert found[1:-2] in ([], ["1", "2"])


def test_an_outage_between_two_windows_costs_nothing(cluster: MockCluster) -> None:
    producer = producer_of(cluster)
    assert send(producer, "1") == [A]
    cluster.go_down()
    cluster.come_up()
    assert send(producer, "2") == [A]
    producer.close()
    assert stored(cluster.bootstrap) == ["1", "2"]


@pytest.mark.kafka
def test_a_frozen_broker_is_an_outage_until_it_goes_on(
    broker_server: BrokerServer, topic: str
) -> None:
    Topics(broker_server.bootstrap).create([TopicNeed(name=topic, compacted=False, partitions=1)])
    producer = KafkaRecordProducer(
        broker_server.bootstrap, topic, clock=SystemClock(), bounds=SHORT
    )
    assert send(producer, "1") == [A]
    broker_server.pause()
    try:
        assert send(producer, "2") == [N]
        with pytest.raises(Unavailable):
            Topics(broker_server.bootstrap, round_trip_timeout_s=1).missing([])
    finally:
        broker_server.resume()
    assert send(producer, "2") == [A]
    producer.close()
    found = stored(broker_server.bootstrap, topic)
    assert found in (["1", "2"], ["1", "2", "2"])


@pytest.mark.kafka
def test_a_broker_that_was_killed_is_found_again(broker_server: BrokerServer, topic: str) -> None:
    producer = KafkaRecordProducer(
        broker_server.bootstrap, topic, clock=SystemClock(), bounds=SHORT
    )
    need = TopicNeed(name=topic, compacted=False, partitions=1)
    Topics(broker_server.bootstrap).create([need])
    assert send(producer, "1") == [A]
    broker_server.kill()
    try:
        assert send(producer, "2") == [N]
    finally:
        broker_server.start()
    Topics(broker_server.bootstrap).create([need])
    assert send(producer, "2", "3") == [A, A]
    producer.close()
    # This broker forgets at its end; what matters is that the producer goes on in order.
    assert stored(broker_server.bootstrap, topic)[-2:] == ["2", "3"]
