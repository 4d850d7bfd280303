"""A topic in memory with both kinds of producer, and a script of what goes wrong next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgexchange.lifecycle.position import Position
from msgexchange.ports import (
    Acknowledged,
    Delivery,
    Dependency,
    NotDelivered,
    Record,
    RecordRefused,
    Superseded,
    Unavailable,
    WindowRefused,
)


@dataclass
class Topic:
    """Visible records in order; ``refused`` values are taken by no broker."""

    records: list[Record] = field(default_factory=list)
    refused: set[bytes | None] = field(default_factory=set)
    down: bool = False

    def ids(self) -> list[int]:
        return [int(dict(record.headers)["event-id"].partition(b"-")[2]) for record in self.records]

    def put(self, record: Record) -> Acknowledged:
        self.records.append(record)
        return Acknowledged(0, len(self.records) - 1)


@dataclass
class OneByOne:
    """A ``RecordProducer``: in order, up to the first that does not go."""

    topic: Topic

    def send(self, records: Sequence[Record]) -> Sequence[Delivery]:
        answers: list[Delivery] = []
        for record in records:
            if self.topic.down or any(not isinstance(a, Acknowledged) for a in answers):
                answers.append(NotDelivered("down" if self.topic.down else "held back"))
            elif record.value in self.topic.refused:
                answers.append(RecordRefused("invalid"))
            else:
                answers.append(self.topic.put(record))
        return answers

    def close(self) -> None:
        return


@dataclass
class AllOrNothing:
    """A ``TransactionProducer``; ``after_commit`` happens before the answer does."""

    topic: Topic
    committed: Position | None = None
    after_commit: Callable[[], None] = lambda: None
    on_begin: Callable[[], None] = lambda: None
    begun: int = 0
    tried: list[int] = field(default_factory=list)
    """How many records each transaction had."""
    shut_out: bool = False

    def begin(self) -> None:
        self._reach()
        self.begun += 1
        self.shut_out = False
        self.on_begin()

    def position(self) -> Position | None:
        self._reach()
        return self.committed

    def publish(self, records: Sequence[Record], position: Position) -> Sequence[Acknowledged]:
        self._reach()
        self.tried.append(len(records))
        if self.shut_out:
            raise Superseded("a newer producer is at work")
        if any(record.value in self.topic.refused for record in records):
            raise WindowRefused("invalid")
        landed = [self.topic.put(record) for record in records]
        self.committed = position
        self.after_commit()
        return landed

    def close(self) -> None:
        return

    def _reach(self) -> None:
        if self.topic.down:
            raise Unavailable(Dependency.BROKER, "down")
