"""Whether the topics are there and fit for what goes into them (spec 4.2, 4.3)."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from msgexchange.broker.errors import NOT_KNOWN_HERE, error_of, reason_of, translated
from msgexchange.broker.settings import LOGGER, ClientSettings, client_config
from msgexchange.ports import Dependency, Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNeed:
    """A topic that is written to; the counts are those it is created with.

    ``keeps_flights`` False: nothing on it is read again, so that no setting can lose anything.
    """

    name: str
    compacted: bool
    partitions: int = 4
    replicas: int = 1
    keeps_flights: bool = True


class Topics:
    """Looks at topics and creates those that are missing; every call may raise ``Unavailable``."""

    def __init__(
        self,
        bootstrap: str,
        *,
        settings: ClientSettings | None = None,
        round_trip_timeout_s: float = 10.0,
    ) -> None:
        self._timeout_s = round_trip_timeout_s
        self._client = AdminClient(client_config(bootstrap, settings or {}), logger=LOGGER)

    def missing(self, needs: Sequence[TopicNeed]) -> Sequence[TopicNeed]:
        """Those that do not exist; asking creates none."""
        with translated():
            there = self._client.list_topics(timeout=self._timeout_s).topics
        return [need for need in needs if need.name not in there]

    def create(self, needs: Sequence[TopicNeed]) -> None:
        """Create them; one that exists already is left as it is."""
        if not needs:
            return
        wanted = [
            NewTopic(
                need.name,
                num_partitions=need.partitions,
                replication_factor=need.replicas,
                config={"cleanup.policy": "compact"} if need.compacted else {},
            )
            for need in needs
        ]
        created = self._client.create_topics(wanted, request_timeout=self._timeout_s)
        for name, future in created.items():
            _, error = self._answer(future)
            if error is not None and error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise Unavailable(
                    Dependency.BROKER, f"cannot create topic {name}: {reason_of(error)}"
                )

    def check(self, needs: Sequence[TopicNeed], *, record_bytes_max: int) -> Sequence[str]:
        """What is wrong or doubtful, each with what to do; silent where the broker does not tell.

        ``record_bytes_max`` is the largest record the client lets through.
        """
        missing = {need.name for need in self.missing(needs)}
        problems = [
            f"kafka: topic {need.name} does not exist; create it with key-hashed partitions"
            f"{' and cleanup.policy=compact' if need.compacted else ''}, or set kafka.create-topics"
            for need in needs
            if need.name in missing
        ]
        for need in needs:
            if need.name not in missing:
                problems += self._partition_problems(need)
                if need.keeps_flights:
                    config = self._config(need.name)
                    problems += _config_problems(need, config, record_bytes_max)
        return problems

    def _partition_problems(self, need: TopicNeed) -> Iterator[str]:
        """A topic whose one partition is what it is for must not have more."""
        if need.partitions != 1:
            return
        with translated():
            found = self._client.list_topics(need.name, timeout=self._timeout_s)
        count = len(found.topics[need.name].partitions)
        if count != 1:
            yield f"kafka: topic {need.name} has {count} partitions; it must have one"

    def _config(self, topic: str) -> Mapping[str, str]:
        """The topic's settings; empty where the broker has none to tell."""
        with translated():
            cluster = self._client.list_topics(timeout=self._timeout_s)
        if cluster.controller_id not in cluster.brokers:
            return {}
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        described = self._client.describe_configs([resource], request_timeout=self._timeout_s)
        entries, error = self._answer(described[resource])
        if error is not None:
            if error.code() in NOT_KNOWN_HERE:
                return {}
            raise Unavailable(Dependency.BROKER, f"topic {topic}: {reason_of(error)}")
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def _answer(self, future: "Future[Any]") -> tuple[Any, KafkaError | None]:
        """What an administrative request came to."""
        try:
            # The client ends each request by itself; the second bound is for a client that hangs.
            return future.result(self._timeout_s * 2), None
        except KafkaException as exception:
            return None, error_of(exception)
        except TimeoutError as exception:
            raise Unavailable(Dependency.BROKER, "an administrative request hangs") from exception


def _config_problems(
    need: TopicNeed, config: Mapping[str, str], record_bytes_max: int
) -> Iterator[str]:
    policy = config.get("cleanup.policy")
    if need.compacted and policy is not None and "compact" not in policy:
        yield (
            f"kafka: topic {need.name} has cleanup.policy={policy}, so the last state of a quiet "
            "flight is lost in time; set cleanup.policy=compact"
        )
    if not need.compacted and policy is not None and "compact" in policy:
        yield (
            f"kafka: topic {need.name} has cleanup.policy={policy}, so all but the last change of "
            "a flight are lost in time; set cleanup.policy=delete"
        )
    limit = config.get("max.message.bytes")
    if limit is not None and int(limit) < record_bytes_max:
        yield (
            f"kafka: topic {need.name} takes records up to {limit} bytes, the client lets "
            f"{record_bytes_max} through; raise max.message.bytes of the topic"
        )
