"""A Kafka-protocol broker inside this process, for the embedded profile and the tests."""

from collections.abc import Sequence

from confluent_kafka import Producer

from msgexchange.broker.errors import translated
from msgexchange.broker.settings import LOGGER
from msgexchange.ports import Dependency, Unavailable


class EmbeddedBroker:
    """The client library's mock cluster: one broker on a free port of 127.0.0.1.

    Other processes reach it too, as long as this one lives. It is no broker to keep data in:

    - everything is in memory and gone with ``close`` or the process;
    - each partition keeps at most about 5 MB or 100,000 records, whichever comes first, and drops
      its oldest;
    - every topic has four partitions and comes into being when it is first asked for; topics can
      be neither created otherwise, configured, compacted nor deleted, and there is no controller,
      so every administrative request times out;
    - it checks no sizes and no sequence numbers, and has no access control.
    """

    def __init__(self, topics: Sequence[str] = (), *, start_timeout_s: float = 5.0) -> None:
        """``Unavailable`` if it does not answer in time."""
        self._host: Producer | None = Producer(
            {
                "test.mock.num.brokers": 1,
                "client.id": "msgexchange-embedded",
                "log_level": 3,
            },
            logger=LOGGER,
        )
        with translated():
            brokers = self._host.list_topics(timeout=start_timeout_s).brokers
            for topic in topics:
                self._host.list_topics(topic, timeout=start_timeout_s)
        if not brokers:
            raise Unavailable(Dependency.BROKER, "the embedded broker names no address")
        broker = next(iter(brokers.values()))
        self.bootstrap = f"{broker.host}:{broker.port}"

    def close(self) -> None:
        """Stop it; its connections drop and its data is gone."""
        self._host = None
