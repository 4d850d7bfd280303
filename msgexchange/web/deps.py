"""What the HTTP interface is given; it fetches nothing by itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from prometheus_client import CollectorRegistry

from msgexchange.flight.events import Target
from msgexchange.flight.past import PastFlight
from msgexchange.ids import Flid, MailboxId
from msgexchange.ports import Reads
from msgexchange.web.admin import Admin
from msgexchange.web.health import Health


class Entry(Protocol):
    """Where a received message goes."""

    def receive(self, text: str, traceparent: str | None) -> MailboxId:
        """The mailbox row's id once its insert is committed.

        Raises ``Unavailable`` (nothing written) or ``InsertUnknown``.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebDeps:
    """Everything ``create_app`` needs.

    ``written_lives`` gives what history holds of a flight, oldest first. ``timezone`` is the
    airport's IANA name, ``topics`` the Kafka targets' full topic names; without a ``send_token``
    whoever reaches the port may send; ``is_shadow`` refuses sending.
    """

    reads: Reads
    written_lives: Callable[[Flid], Sequence[PastFlight]]
    entry: Entry
    health: Callable[[], Health]
    metrics: CollectorRegistry
    timezone: str
    topics: Mapping[Target, str]
    reference_types: frozenset[str] = frozenset()
    """Of the catalogue."""
    send_token: str | None = field(repr=False)
    body_bytes_max: int
    now: Callable[[], datetime]
    is_shadow: bool
    jaeger_url: str | None = None
    """Where people look at traces."""
    admin: Admin | None = None
    """None: no admin token is set, and no call under ``/admin`` exists."""
