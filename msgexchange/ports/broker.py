"""Kafka, one topic at a time (spec 4.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from msgexchange.ports.delivery import Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A Kafka record; ``value`` None is a tombstone."""

    key: bytes
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class RecordProducer(Protocol):
    """An ordered, idempotent producer of one topic."""

    def send(self, records: Sequence[Record]) -> Sequence[Delivery]:
        """Send in order, wait for every acknowledgement (bounded), one answer per record."""
        ...

    def close(self) -> None: ...
