"""What every broker gives us, in the process and in one of its own (spec 4.2, 4.4)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from msgexchange.broker.embedded import EmbeddedBroker
from msgexchange.broker.producer import KafkaRecordProducer
from msgexchange.broker.reader import StoredRecord, TopicReader
from msgexchange.broker.settings import ProducerBounds
from msgexchange.broker.topics import TopicNeed, Topics
from msgexchange.clock import SystemClock
from msgexchange.ports import (
    Acknowledged,
    Delivery,
    NotDelivered,
    Record,
    RecordRefused,
    Unavailable,
)
from servers.broker import BrokerServer
from servers.private import closed_port

BOUNDS = ProducerBounds(message_timeout_s=5, round_trip_timeout_s=2, record_bytes_max=100_000)


@dataclass
class Place:
    """A broker with one fresh topic of several partitions, and what was opened on it."""

    bootstrap: str
    topic: str
    opened: list[KafkaRecordProducer] = field(default_factory=list)

    def producer(self, bounds: ProducerBounds = BOUNDS) -> KafkaRecordProducer:
        made = KafkaRecordProducer(self.bootstrap, self.topic, clock=SystemClock(), bounds=bounds)
        self.opened.append(made)
        return made

    def records(self) -> list[StoredRecord]:
        reader = TopicReader(self.bootstrap, self.topic, silence_s_max=5)
        try:
            return list(reader.records())
        finally:
            reader.close()


SERVERS = [
    pytest.param("broker_server", marks=pytest.mark.kafka),
    pytest.param("apache_kafka", marks=pytest.mark.apache_kafka),
]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> BrokerServer:
    """A broker whose topics can be made, configured and looked at."""
    made: BrokerServer = request.getfixturevalue(request.param)
    return made


@pytest.fixture(params=["embedded", *SERVERS])
def place(request: pytest.FixtureRequest, topic: str) -> Iterator[Place]:
    embedded: EmbeddedBroker | None = None
    if request.param == "embedded":
        embedded = EmbeddedBroker([topic])
        bootstrap = embedded.bootstrap
    else:
        bootstrap = request.getfixturevalue(request.param).bootstrap
        Topics(bootstrap).create([TopicNeed(name=topic, compacted=False, partitions=3)])
    made = Place(bootstrap, topic)
    yield made
    for producer in made.opened:
        producer.close()
    if embedded is not None:
        embedded.close()


def record(key: str, value: str | None = "{}", **headers: str) -> Record:
    return Record(
        key=key.encode(),
        value=None if value is None else value.encode(),
        headers=[(name.replace("_", "-"), text.encode()) for name, text in headers.items()],
    )


def landed(deliveries: list[Delivery]) -> list[tuple[int, int]]:
    places = []
    for delivery in deliveries:
        assert isinstance(delivery, Acknowledged), delivery
        places.append((delivery.partition, delivery.offset))
    return places


def test_records_of_a_key_are_stored_in_the_order_they_were_sent(place: Place) -> None:
    producer = place.producer()
    sent = [record(f"F{n % 7}", f"{n}") for n in range(300)]
    for start in range(0, 300, 100):
        landed(list(producer.send(sent[start : start + 100])))
    stored = place.records()
    assert len(stored) == 300
    for key in {r.key for r in sent}:
        assert [s.value for s in stored if s.key == key] == [r.value for r in sent if r.key == key]
        assert len({s.partition for s in stored if s.key == key}) == 1


def test_an_acknowledgement_says_where_the_record_landed(place: Place) -> None:
    sent = [record(f"F{n}", f"{n}") for n in range(20)]
    deliveries = landed(list(place.producer().send(sent)))
    stored = {(s.partition, s.offset): s for s in place.records()}
    for (partition, offset), one in zip(deliveries, sent, strict=True):
        assert stored[partition, offset].key == one.key
        assert stored[partition, offset].value == one.value
    assert len({partition for partition, _ in deliveries}) > 1


def test_a_tombstone_keeps_its_null_value_and_an_empty_value_stays_empty(place: Place) -> None:
    landed(list(place.producer().send([record("F1", None), record("F1", "")])))
    assert [(s.key, s.value) for s in place.records()] == [(b"F1", None), (b"F1", b"")]


def test_headers_keep_order_and_bytes(place: Place) -> None:
    sent = record("F1", "{}", event_id="g-1", event_type="NOTICE", operation_day="2026-09-03")
    landed(list(place.producer().send([sent])))
    [stored] = place.records()
    assert list(stored.headers) == list(sent.headers)
    assert stored.header("event-id") == "g-1"
    assert stored.header("no-such") is None


def test_no_records_have_no_answers(place: Place) -> None:
    assert list(place.producer().send([])) == []


def test_a_record_over_the_limit_is_refused_and_nothing_overtakes_it(place: Place) -> None:
    producer = place.producer()
    large = record("F1", "x" * 200_000)
    first, refused, behind = producer.send([record("F1", "1"), large, record("F1", "2")])
    assert isinstance(first, Acknowledged)
    assert isinstance(refused, RecordRefused)
    assert "MSG_SIZE_TOO_LARGE" in refused.reason
    assert isinstance(behind, NotDelivered)
    assert [s.value for s in place.records()] == [b"1"]
    landed(list(producer.send([record("F1", "2")])))
    assert [s.value for s in place.records()] == [b"1", b"2"]


def test_a_window_larger_than_the_clients_queue_goes_out_in_order(place: Place) -> None:
    producer = place.producer(ProducerBounds(message_timeout_s=5, queue_records_max=10))
    sent = [record("F1", f"{n}") for n in range(100)]
    landed(list(producer.send(sent)))
    assert [s.value for s in place.records()] == [r.value for r in sent]


def test_a_closed_producer_opens_again(place: Place) -> None:
    producer = place.producer()
    landed(list(producer.send([record("F1", "1")])))
    producer.close()
    landed(list(producer.send([record("F1", "2")])))
    assert [s.value for s in place.records()] == [b"1", b"2"]


def test_an_empty_topic_reads_as_empty(place: Place) -> None:
    assert place.records() == []
    reader = TopicReader(place.bootstrap, place.topic)
    starts = reader.starts()
    reader.close()
    assert len(starts) > 1
    assert set(starts.values()) == {0}


def test_a_topic_may_be_read_twice(place: Place) -> None:
    landed(list(place.producer().send([record("F1", "1"), record("F1", "2")])))
    reader = TopicReader(place.bootstrap, place.topic)
    once, again = list(reader.records()), list(reader.records())
    reader.close()
    assert [stored.value for stored in once] == [b"1", b"2"]
    assert again == once


def test_a_missing_topic_is_named_with_what_to_do(place: Place) -> None:
    need = TopicNeed(name=f"{place.topic}-none", compacted=True)
    assert list(Topics(place.bootstrap).missing([need])) == [need]
    [problem] = Topics(place.bootstrap).check([need], record_bytes_max=1000)
    assert f"{place.topic}-none does not exist" in problem
    assert "kafka.create-topics" in problem
    # Asking has not made it.
    assert list(Topics(place.bootstrap).missing([need])) == [need]


def test_a_topic_that_fits_has_no_problem(place: Place) -> None:
    need = TopicNeed(name=place.topic, compacted=False)
    assert list(Topics(place.bootstrap).check([need], record_bytes_max=1000)) == []


def test_a_created_topic_has_the_partitions_and_compaction_asked_for(
    server: BrokerServer, topic: str
) -> None:
    topics = Topics(server.bootstrap)
    need = TopicNeed(name=topic, compacted=True, partitions=5)
    topics.create([need])
    topics.create([need])
    assert list(topics.check([need], record_bytes_max=1000)) == []
    reader = TopicReader(server.bootstrap, topic)
    assert len(reader.starts()) == 5
    reader.close()
    [problem] = topics.check([TopicNeed(name=topic, compacted=False)], record_bytes_max=1000)
    assert "cleanup.policy=delete" in problem


def test_a_topic_that_must_have_one_partition_may_have_no_more(
    server: BrokerServer, topic: str
) -> None:
    topics = Topics(server.bootstrap)
    topics.create([TopicNeed(name=topic, compacted=True, partitions=3)])
    need = TopicNeed(name=topic, compacted=True, partitions=1)
    [problem] = topics.check([need], record_bytes_max=1000)
    assert "has 3 partitions; it must have one" in problem


@pytest.mark.apache_kafka
def test_a_states_topic_that_is_not_compacted_or_takes_less_than_we_send_is_told(
    apache_kafka: BrokerServer, topic: str
) -> None:
    topics = Topics(apache_kafka.bootstrap)
    topics.create([TopicNeed(name=topic, compacted=False)])
    need = TopicNeed(name=topic, compacted=True)
    [policy, limit] = topics.check([need], record_bytes_max=50_000_000)
    assert f"{topic} has cleanup.policy=delete" in policy
    assert "set cleanup.policy=compact" in policy
    assert "raise max.message.bytes of the topic" in limit
    kept_by_nobody = TopicNeed(name=topic, compacted=True, keeps_flights=False)
    assert list(topics.check([kept_by_nobody], record_bytes_max=50_000_000)) == []


def test_a_port_where_nobody_listens_is_an_outage() -> None:
    nowhere = f"127.0.0.1:{closed_port()}"
    bounds = ProducerBounds(message_timeout_s=1, round_trip_timeout_s=0.3)
    producer = KafkaRecordProducer(nowhere, "t", clock=SystemClock(), bounds=bounds)
    assert [type(answer) for answer in producer.send([record("F1"), record("F2")])] == [
        NotDelivered,
        NotDelivered,
    ]
    producer.close()
    reader = TopicReader(nowhere, "t", silence_s_max=0.3)
    with pytest.raises(Unavailable):
        list(reader.records())
    reader.close()
    with pytest.raises(Unavailable):
        Topics(nowhere, round_trip_timeout_s=0.3).missing([TopicNeed(name="t", compacted=False)])
