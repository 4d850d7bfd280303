"""What a transaction's producer makes of each error of the broker: again, anew, or shut out.

The mock cluster can be told to answer anything; that readers see nothing of what was taken back,
and that an old producer is shut out, only Apache Kafka shows.
"""

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import KafkaError

from fakes.mock_cluster import NOT_ALLOWED, NOT_LEADER, TOO_LARGE, MockCluster, Request
from msgexchange.broker.settings import ProducerBounds
from msgexchange.broker.transactions import KafkaTransactions
from msgexchange.clock import SystemClock
from msgexchange.ids import EventId
from msgexchange.lifecycle.position import Position
from msgexchange.ports import (
    Acknowledged,
    Record,
    Superseded,
    Unavailable,
    WindowRefused,
)

pytestmark = pytest.mark.kafka

TOPIC, POSITIONS, NAME = "msg", "positions", "t-store-msg"
BOUNDS = ProducerBounds(message_timeout_s=3, round_trip_timeout_s=1)
LOADING = KafkaError.COORDINATOR_LOAD_IN_PROGRESS
AWAY = KafkaError.COORDINATOR_NOT_AVAILABLE
MOVED = KafkaError.NOT_COORDINATOR
BUSY = KafkaError.CONCURRENT_TRANSACTIONS
FENCED = KafkaError.PRODUCER_FENCED
EPOCH = KafkaError.INVALID_PRODUCER_EPOCH
NOT_OURS = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    made = MockCluster(brokers=3)
    made.create(TOPIC, 1)
    made.create(POSITIONS, 1)
    yield made
    made.close()


@pytest.fixture
def producer(cluster: MockCluster) -> Iterator[KafkaTransactions]:
    made = KafkaTransactions(
        cluster.bootstrap,
        TOPIC,
        name=NAME,
        position_topic=POSITIONS,
        clock=SystemClock(),
        prove=lambda: None,
        # A long linger: a window is one request, so that an error meets all of it.
        settings={"linger.ms": 50, "retry.backoff.ms": 10},
        bounds=BOUNDS,
    )
    yield made
    made.close()


def publish(producer: KafkaTransactions, *values: str) -> Sequence[Acknowledged]:
    records = [Record(key=b"F1", value=value.encode(), headers=()) for value in values]
    position = Position(store_id="s", generation=1, event_id=EventId(7), nonce=7)
    return producer.publish(records, position)


def is_well(producer: KafkaTransactions) -> None:
    """A new beginning publishes."""
    producer.begin()
    assert len(publish(producer, "1", "2")) == 2


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Request.PRODUCE, NOT_LEADER),
        (Request.ADD_PARTITIONS, BUSY),
        (Request.ADD_PARTITIONS, LOADING),
        (Request.ADD_OFFSETS, MOVED),
        (Request.COMMIT_OFFSETS, AWAY),
        (Request.COMMIT_OFFSETS, LOADING),
        (Request.END_TRANSACTION, BUSY),
        (Request.END_TRANSACTION, MOVED),
        (Request.END_TRANSACTION, AWAY),
    ],
)
def test_what_the_client_calls_retriable_is_waited_out_within_the_window(
    cluster: MockCluster, producer: KafkaTransactions, request_: Request, code: int
) -> None:
    producer.begin()
    cluster.answer_next(request_, code, code)
    assert len(publish(producer, "1", "2")) == 2
    assert len(publish(producer, "3")) == 1


@pytest.mark.parametrize("code", [LOADING, MOVED, BUSY])
def test_a_beginning_waits_for_the_coordinator(
    cluster: MockCluster, producer: KafkaTransactions, code: int
) -> None:
    cluster.answer_next(Request.INIT_PRODUCER_ID, code, code)
    is_well(producer)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Request.ADD_PARTITIONS, NOT_ALLOWED),
        (Request.PRODUCE, NOT_ALLOWED),
        (Request.ADD_OFFSETS, KafkaError.GROUP_AUTHORIZATION_FAILED),
        (Request.COMMIT_OFFSETS, KafkaError.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_an_abortable_error_aborts_at_once_and_charges_nobody(
    cluster: MockCluster, producer: KafkaTransactions, request_: Request, code: int
) -> None:
    producer.begin()
    publish(producer, "0")
    cluster.listen()
    cluster.answer_next(request_, code)
    with pytest.raises(Unavailable):
        publish(producer, "1", "2")
    assert cluster.asked(Request.END_TRANSACTION) == 1
    is_well(producer)


@pytest.mark.parametrize("code", [FENCED, EPOCH])
@pytest.mark.parametrize(
    "request_", [Request.ADD_PARTITIONS, Request.ADD_OFFSETS, Request.END_TRANSACTION]
)
def test_who_is_fenced_is_shut_out_until_it_begins_anew(
    cluster: MockCluster, producer: KafkaTransactions, request_: Request, code: int
) -> None:
    producer.begin()
    publish(producer, "0")
    cluster.answer_next(request_, code)
    with pytest.raises(Superseded):
        publish(producer, "1")
    is_well(producer)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Request.ADD_PARTITIONS, NOT_OURS),
        (Request.END_TRANSACTION, NOT_OURS),
        (Request.END_TRANSACTION, KafkaError.INVALID_TXN_STATE),
        (Request.INIT_PRODUCER_ID, NOT_OURS),
    ],
)
def test_after_a_fatal_error_a_fresh_producer_goes_on(
    cluster: MockCluster, producer: KafkaTransactions, request_: Request, code: int
) -> None:
    if request_ is not Request.INIT_PRODUCER_ID:
        producer.begin()
    cluster.answer_next(request_, code)
    with pytest.raises(Unavailable):
        is_well(producer) if request_ is Request.INIT_PRODUCER_ID else publish(producer, "1")
    is_well(producer)


def test_after_any_failure_nothing_is_published_before_a_new_beginning(
    cluster: MockCluster, producer: KafkaTransactions
) -> None:
    with pytest.raises(Unavailable, match="no session"):
        publish(producer, "1")
    producer.begin()
    cluster.answer_next(Request.PRODUCE, TOO_LARGE)
    with pytest.raises(WindowRefused, match="MSG_SIZE_TOO_LARGE"):
        publish(producer, "1", "2")
    with pytest.raises(Unavailable, match="no session"):
        publish(producer, "1")
    is_well(producer)


def test_while_leaders_and_coordinators_are_elected_every_window_goes_out(
    cluster: MockCluster, producer: KafkaTransactions
) -> None:
    producer.begin()
    for number in range(6):
        cluster.elect(TOPIC, 0, 1 + number % 3)
        cluster.coordinate("transaction", NAME, 1 + (number + 1) % 3)
        cluster.coordinate("group", NAME, 1 + (number + 2) % 3)
        assert len(publish(producer, *"abc")) == 3


def test_a_partition_without_a_leader_is_an_outage_until_there_is_one(
    cluster: MockCluster, producer: KafkaTransactions
) -> None:
    producer.begin()
    publish(producer, "0")
    # Not by taking the leader away: the mock cluster breaks on that.
    cluster.answer_next(Request.PRODUCE, *[NOT_LEADER] * 1000)
    with pytest.raises(Unavailable):
        publish(producer, "1")
    cluster.answer_as_ever(Request.PRODUCE)
    is_well(producer)


def test_a_cluster_too_slow_for_a_window_blames_no_record(
    cluster: MockCluster, producer: KafkaTransactions
) -> None:
    producer.begin()
    publish(producer, "0")
    for broker in (1, 2, 3):
        cluster.take_time(5000, broker)
    with pytest.raises(Unavailable):
        publish(producer, "1", "2")
    for broker in (1, 2, 3):
        cluster.take_time(0, broker)
    is_well(producer)
