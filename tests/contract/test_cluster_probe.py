"""A broker that takes transactional requests and keeps none of their promises is found out."""

import pytest

from msgexchange.broker.cluster_probe import ClusterProbe
from msgexchange.broker.reader import StoredRecord, TopicReader
from msgexchange.broker.topics import TopicNeed, Topics
from msgexchange.ports import DeliveryStopped
from servers.broker import BrokerServer


def probe(bootstrap: str, topic: str) -> ClusterProbe:
    return ClusterProbe(
        bootstrap,
        name=f"n-{topic}",
        scratch_topic=topic,
        position_topic=f"{topic}-position",
        token=lambda: "t",
    )


def create(bootstrap: str, topic: str) -> None:
    Topics(bootstrap).create(
        [
            TopicNeed(name=topic, compacted=False, partitions=1),
            TopicNeed(name=f"{topic}-position", compacted=True, partitions=1),
        ]
    )


@pytest.mark.kafka
def test_a_broker_without_real_transactions_is_refused_by_name(
    broker_server: BrokerServer, topic: str
) -> None:
    create(broker_server.bootstrap, topic)
    for _ in range(2):
        with pytest.raises(DeliveryStopped, match=r"kafka\.delivery: .*at-least-once"):
            probe(broker_server.bootstrap, topic).prove()


@pytest.mark.apache_kafka
def test_apache_kafka_is_proven_once(apache_kafka: BrokerServer, topic: str) -> None:
    create(apache_kafka.bootstrap, topic)
    probe(apache_kafka.bootstrap, topic).prove()
    tried = len(_records(apache_kafka.bootstrap, topic))
    probe(apache_kafka.bootstrap, topic).prove()
    assert tried == len(_records(apache_kafka.bootstrap, topic)) == 1


def _records(bootstrap: str, topic: str) -> list[StoredRecord]:
    reader = TopicReader(bootstrap, topic)
    try:
        return list(reader.records())
    finally:
        reader.close()
