"""Whether a cluster keeps what exactly-once rests on: found out, not believed (spec 4.2).

Some brokers take every transactional request and still show aborted records, or let an old producer
commit. So before a cluster is used for the first time one transaction is aborted and one is taken
over on a scratch topic, and what a reader sees of it is compared. That it went well is remembered
on the cluster itself, as the committed offset of a group of its own: another cluster, or one that
was set up anew, is asked again.
"""

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException, Producer, TopicPartition

from msgexchange.broker.errors import error_of, reason_of
from msgexchange.broker.position import PositionReader
from msgexchange.broker.reader import TopicReader
from msgexchange.broker.settings import LOGGER, ClientSettings, ProducerBounds, transaction_config
from msgexchange.ports import DeliveryStopped, Dependency, Unavailable

PROVEN = "exactly-once holds"
CALL_S_MAX = 15.0
COMMIT_S_MAX = 5.0
"""An old producer is told at once that it is shut out."""

REFUSAL = (
    "kafka.delivery: this cluster cannot deliver exactly once: {}; use a broker that implements "
    'Kafka transactions, or set kafka.delivery = "at-least-once"'
)


class ClusterProbe:
    """``name`` is that of the instance: its scratch producer and group end in ``-probe``."""

    def __init__(
        self,
        bootstrap: str,
        *,
        name: str,
        scratch_topic: str,
        position_topic: str,
        token: Callable[[], str],
        settings: ClientSettings | None = None,
        bounds: ProducerBounds | None = None,
    ) -> None:
        bounds = bounds or ProducerBounds()
        own_name = f"{name}-probe"
        self._bootstrap = bootstrap
        self._topic = scratch_topic
        self._position_topic = position_topic
        self._token = token
        self._settings = settings or {}
        self._config = transaction_config(bootstrap, self._settings, bounds, name=own_name)
        self._position = PositionReader(
            bootstrap,
            position_topic,
            group=own_name,
            settings=self._settings,
            round_trip_timeout_s=bounds.round_trip_timeout_s,
        )

    def prove(self) -> None:
        """``DeliveryStopped`` names what the cluster does not keep; ``Unavailable``."""
        if self._position.metadata() == PROVEN:
            return
        token = self._token()
        old, new = self._producer(), self._producer()
        self._abort_one(old, f"{token} aborted")
        self._leave_open(old, f"{token} taken over")
        self._call(new.init_transactions, CALL_S_MAX)
        old_may_commit = _commits(old)
        if old_may_commit:
            raise DeliveryStopped(REFUSAL.format("it lets an old producer commit"))
        self._write(new, f"{token} committed")
        self._commit_offset(new, token)
        seen = self._seen(token)
        if seen != [f"{token} committed"]:
            raise DeliveryStopped(
                REFUSAL.format(f"a read_committed reader sees {', '.join(seen) or 'nothing'}")
            )
        if old_may_commit is None:
            raise Unavailable(Dependency.BROKER, "an old producer's commit got no answer in time")
        if self._position.metadata() != token:
            raise DeliveryStopped(
                REFUSAL.format(f"it lost an offset committed on {self._position_topic}")
            )
        # Only now: a cluster that failed must be asked again.
        self._call(new.begin_transaction)
        self._commit_offset(new, PROVEN)

    def _producer(self) -> Producer:
        return Producer(self._config, logger=LOGGER)

    def _abort_one(self, producer: Producer, value: str) -> None:
        self._call(producer.init_transactions, CALL_S_MAX)
        self._write(producer, value)
        self._call(producer.abort_transaction, CALL_S_MAX)

    def _leave_open(self, producer: Producer, value: str) -> None:
        self._write(producer, value)

    def _commit_offset(self, producer: Producer, metadata: str) -> None:
        offset = TopicPartition(self._position_topic, 0, 0, metadata=metadata)
        group = self._position.group_metadata()
        self._call(producer.send_offsets_to_transaction, [offset], group, CALL_S_MAX)
        self._call(producer.commit_transaction, CALL_S_MAX)

    def _write(self, producer: Producer, value: str) -> None:
        self._call(producer.begin_transaction)
        self._call(producer.produce, self._topic, value.encode())
        if producer.flush(CALL_S_MAX):
            raise Unavailable(Dependency.BROKER, f"topic {self._topic} took no record in time")

    def _call(self, call: Callable[..., Any], *arguments: object) -> None:
        try:
            call(*arguments)
        except KafkaException as exception:
            reason = reason_of(error_of(exception))
            raise Unavailable(Dependency.BROKER, f"probe of transactions: {reason}") from exception

    def _seen(self, token: str) -> list[str]:
        reader = TopicReader(self._bootstrap, self._topic, settings=self._settings)
        try:
            values = [(record.value or b"").decode() for record in reader.records()]
        finally:
            reader.close()
        return [value for value in values if value.startswith(token)]


def _commits(producer: Producer) -> bool | None:
    """Whether the broker lets this producer end its transaction, None if it does not say."""
    try:
        producer.commit_transaction(COMMIT_S_MAX)
    except KafkaException as exception:
        return None if error_of(exception).retriable() else False
    return True
