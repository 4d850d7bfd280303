"""The committed position of a target: an offset of our own group, with who and what in its
metadata (spec 4.2).
"""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from msgexchange.broker.errors import error_of, reason_of, translated
from msgexchange.broker.settings import LOGGER, ClientSettings, client_config
from msgexchange.lifecycle.position import Position
from msgexchange.ports import DeliveryStopped, Dependency, Unavailable

NOWHERE = -1001
"""Offset of a group that has committed none."""


class PositionReader:
    """Reads what the group has committed; joins it never."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        group: str,
        settings: ClientSettings,
        round_trip_timeout_s: float,
    ) -> None:
        self._topic = topic
        self._group = group
        self._timeout_s = round_trip_timeout_s
        self._client = client_config(bootstrap, settings)
        self._config = {
            **self._client,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            # With it the broker answers only when no transaction is pending on the offset.
            "isolation.level": "read_committed",
            "allow.auto.create.topics": False,
        }

    def group_metadata(self) -> Any:
        """What a producer names the group with."""
        consumer = Consumer(self._config, logger=LOGGER)
        try:
            return consumer.consumer_group_metadata()
        finally:
            consumer.close()

    def read(self) -> Position | None:
        """None where the group never committed; ``DeliveryStopped`` where others use it."""
        self._refuse_members()
        text = self.metadata()
        if text is None:
            return None
        try:
            return Position.decode(text)
        except ValueError as error:
            raise DeliveryStopped(
                f"the offset of group {self._group} on {self._topic} is not msgexchange's "
                f"({error}): delete the group if nobody else uses it, or set another kafka.prefix"
            ) from error

    def metadata(self) -> str | None:
        """The committed offset's metadata, None where there is no offset."""
        consumer = Consumer(self._config, logger=LOGGER)
        try:
            with translated():
                self._check_topic(consumer)
                [found] = consumer.committed(
                    [TopicPartition(self._topic, 0)], timeout=self._timeout_s
                )
        finally:
            consumer.close()
        if found.error is not None:
            raise Unavailable(Dependency.BROKER, f"position: {reason_of(found.error)}")
        return None if found.offset == NOWHERE else found.metadata or ""

    def _check_topic(self, consumer: Consumer) -> None:
        """A position on a topic that is not there may be dropped without a word."""
        described = consumer.list_topics(self._topic, timeout=self._timeout_s).topics[self._topic]
        if described.error is not None:
            raise Unavailable(
                Dependency.BROKER,
                f"position topic {self._topic}: {reason_of(described.error)}; create it with one "
                "partition and cleanup.policy=compact, or set kafka.create-topics",
            )

    def _refuse_members(self) -> None:
        admin = AdminClient(self._client, logger=LOGGER)
        described: Mapping[str, Any] = admin.describe_consumer_groups(
            [self._group], request_timeout=self._timeout_s
        )
        try:
            group = described[self._group].result(self._timeout_s * 2)
        except KafkaException as exception:
            error = error_of(exception)
            if error.code() == KafkaError.GROUP_ID_NOT_FOUND:
                return
            raise Unavailable(Dependency.BROKER, f"group: {reason_of(error)}") from exception
        except TimeoutError as exception:
            raise Unavailable(Dependency.BROKER, "an administrative request hangs") from exception
        if group.members:
            raise DeliveryStopped(
                f"{len(group.members)} consumers are members of group {self._group}, which holds "
                "msgexchange's own position: give them another group.id"
            )
