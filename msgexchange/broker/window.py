"""The answers to one window of records, as the client reports them."""

from collections.abc import Sequence

from confluent_kafka import KafkaError, Message

from msgexchange.broker.errors import PURGED, RECORD_REFUSED, reason_of
from msgexchange.ports import Acknowledged, Delivery, NotDelivered, RecordRefused

HELD_BACK = NotDelivered("held back behind a record that did not go out")


class Window:
    """The answers to one window, as the reports come in."""

    def __init__(self, size: int) -> None:
        self._answers: list[Delivery | None] = [None] * size
        self.enqueued = 0
        self.broken: str | None = None
        """Why the session can go on no more."""
        self._acknowledged = 0
        self._failed = 0

    @property
    def unreported(self) -> int:
        return self.enqueued - self._acknowledged - self._failed

    @property
    def waits(self) -> bool:
        """Worth waiting for: after a failure the rest can only be purged."""
        return self.unreported > 0 and not self._failed and self.broken is None

    @property
    def is_sound(self) -> bool:
        """Everything that was handed to the client is at the broker."""
        return self._acknowledged == self.enqueued and self.broken is None

    def report(self, number: int, error: KafkaError | None, message: Message) -> None:
        """What the client calls once for each record, from ``poll``."""
        if error is not None:
            self._failed += 1
            if error.code() not in PURGED:
                self._answers[number] = _failure(error)
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self._acknowledged += 1
        self._answers[number] = Acknowledged(partition, offset)

    def refuse(self, number: int, error: KafkaError) -> None:
        """The client itself did not take the record."""
        self._answers[number] = _failure(error)
        if error.code() not in RECORD_REFUSED:
            self.broken = reason_of(error)

    def answers(self) -> Sequence[Delivery]:
        """An answer for every record; one without a report was not acknowledged."""
        unanswered = NotDelivered(self.broken or "not acknowledged in time")
        return [
            answer or (unanswered if number < self.enqueued else HELD_BACK)
            for number, answer in enumerate(self._answers)
        ]


def _failure(error: KafkaError) -> Delivery:
    if error.code() in RECORD_REFUSED:
        return RecordRefused(reason_of(error))
    return NotDelivered(reason_of(error))
