"""Kafka, one topic, a window at a time: all of it with its position, or nothing (spec 4.2)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.position import Known, Mark, Position
from msgexchange.ports.broker import Record
from msgexchange.ports.delivery import Acknowledged
from msgexchange.ports.failures import Dependency, PortError, Unavailable


class WindowRefused(PortError):
    """The broker refused a record of the window; nothing of it is visible."""


class Superseded(PortError):
    """A newer producer of the same name is at work; nothing of the window is visible."""


class DeliveryStopped(Unavailable):
    """Sending would break a promise; a person must act first. The text says how."""

    def __init__(self, reason: str) -> None:
        super().__init__(Dependency.BROKER, reason)


class TransactionProducer(Protocol):
    """The producer of one target: whoever begins last is the only one that can publish.

    After any failure: ``begin``, and read ``position``. Only ``WindowRefused`` tells the outcome.
    """

    def begin(self) -> None:
        """Shut out every older producer of this name and end what it left open.

        ``Unavailable``; ``DeliveryStopped`` where the cluster cannot keep the promise.
        """
        ...

    def position(self) -> Position | None:
        """The committed position, None where there never was one. ``DeliveryStopped`` if it cannot
        be read as ours; ``Unavailable``.
        """
        ...

    def publish(self, records: Sequence[Record], position: Position) -> Sequence[Acknowledged]:
        """All records and the position in one transaction; where each record landed.

        No records: the position alone. ``WindowRefused``, ``Superseded`` or ``Unavailable``.
        """
        ...

    def close(self) -> None: ...


class PositionStore(Protocol):
    """Own store: what is known to be published, per target."""

    def mark(self, target: Target) -> Mark | None:
        """DELIVERY_MARK, None before the first event was published."""
        ...

    def known(self, target: Target, event_id: EventId) -> Known | None:
        """What the store has of this event of the target, None if there is none."""
        ...

    def settle(self, fence: Fence, target: Target, position: Position, *, now: datetime) -> int:
        """Mark what the position stands for SENT, in one commit with DELIVERY_MARK.

        Without a flush id every pending event up to it; with one the flush's winners, and what they
        stand for SUPERSEDED. Says how many became SENT.
        """
        ...
