"""Reading a topic back, for verification (spec 4.7)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from msgexchange.broker.errors import reason_of, translated
from msgexchange.broker.settings import LOGGER, ClientSettings, client_config
from msgexchange.ports import Dependency, Unavailable

PARTITION_END = KafkaError._PARTITION_EOF  # noqa: SLF001 - the client's own codes are named so


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A record as the broker keeps it; ``value`` None is a tombstone."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]

    def header(self, name: str) -> str | None:
        """Text of the last header of that name."""
        return dict(self.headers)[name].decode() if name in dict(self.headers) else None


class TopicReader:
    """Reads one topic with read_committed, in no consumer group; for one thread.

    Every call may raise ``Unavailable``, also where the broker is silent for ``silence_s_max``.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        settings: ClientSettings | None = None,
        silence_s_max: float = 10.0,
    ) -> None:
        self._topic = topic
        self._silence_s_max = silence_s_max
        self._consumer = Consumer(
            {
                **client_config(bootstrap, settings or {}),
                # Required by the client; partitions are assigned, so no group comes into being.
                "group.id": "msgexchange-reader",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": False,
                # The end of a partition is learnt from an answer without records: have it soon.
                "fetch.wait.max.ms": 20,
                "queued.max.messages.kbytes": 16_384,
            },
            logger=LOGGER,
        )

    def starts(self) -> Mapping[int, int]:
        """The first offset that each partition still holds; ``Unavailable`` if there is no such
        topic.
        """
        with translated():
            found = self._consumer.list_topics(self._topic, timeout=self._silence_s_max)
            described = found.topics[self._topic]
            if described.error is not None:
                raise Unavailable(
                    Dependency.BROKER, f"topic {self._topic}: {reason_of(described.error)}"
                )
            return {
                partition: self._consumer.get_watermark_offsets(
                    TopicPartition(self._topic, partition), timeout=self._silence_s_max
                )[0]
                for partition in sorted(described.partitions)
            }

    def records(self) -> Iterator[StoredRecord]:
        """Every committed record from the beginning to where each partition is first found to end;
        partitions interleave, offsets within each grow. Not a list: a topic may be larger than
        memory.

        The end is the one met while reading: below an open transaction it lies before the end
        offset that a broker names, and one broker was seen to name an end that is too low.
        """
        unread = set(self.starts())
        with translated():
            self._consumer.assign(
                [TopicPartition(self._topic, partition, OFFSET_BEGINNING) for partition in unread]
            )
        while unread:
            message = self._next()
            partition, offset = _place(message)
            if message.error() is not None:
                unread.discard(partition)
            elif partition in unread:
                yield _stored(message, partition, offset)

    def close(self) -> None:
        self._consumer.close()

    def _next(self) -> Message:
        """The next record or end of a partition."""
        with translated():
            message = self._consumer.poll(self._silence_s_max)
        if message is None:
            raise Unavailable(
                Dependency.BROKER,
                f"topic {self._topic}: nothing came for {self._silence_s_max:g} s while reading",
            )
        error = message.error()
        if error is not None and error.code() != PARTITION_END:
            raise Unavailable(Dependency.BROKER, f"topic {self._topic}: {reason_of(error)}")
        return message


def _place(message: Message) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


def _stored(message: Message, partition: int, offset: int) -> StoredRecord:
    return StoredRecord(
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
    )
