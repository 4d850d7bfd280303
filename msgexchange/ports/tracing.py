"""One trace per message, told after the fact from reserved ids (spec 6.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgexchange.flight.events import Target
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.states import InboxEntry
from msgexchange.ports.delivery import OutboxEntry
from msgexchange.ports.pump import MessageResult


class About(Protocol):
    """What a message is about; asked only where it is traced."""

    @property
    def flids(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Attempted:
    """One attempt on one message: what a commit is about to write, and when its parts ran."""

    entry: InboxEntry
    result: MessageResult
    kind: str | None
    about: About
    decoded: tuple[datetime, datetime] | None
    decided: tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Entered:
    """A message on its way in by HTTP: what its inbox row carries, and what its sender gave."""

    traceparent: str | None
    parent: str | None


class Delivering(Protocol):
    """One window or flush on its way to the broker."""

    @property
    def entries(self) -> Sequence[OutboxEntry]:
        """As they are to be sent: what is traced carries its publish span as ``traceparent``."""
        ...

    def ended(self, *, error: str | None = None) -> None: ...


class Working(Protocol):
    """The traced attempts of one transaction."""

    @property
    def contexts(self) -> dict[MailboxId, str]:
        """``traceparent`` for the events of each message that is traced; the others keep theirs."""
        ...

    def committed(self) -> None:
        """The transaction is over; only now is anything told."""
        ...


class Tracing(Protocol):
    """Never fails, never blocks; costs next to nothing for what is not traced."""

    def origin(self) -> str | None:
        """The ``traceparent`` a new inbox row is stored with; its spans are told by the pump."""
        ...

    def entered(self, traceparent: str | None) -> Entered:
        """As ``origin``, for a message that came by HTTP, perhaps in a trace of its sender."""
        ...

    def received(self, entered: Entered, message_id: MailboxId, *, since: datetime) -> None:
        """The HTTP call that brought it is over."""
        ...

    def working(self, attempts: Sequence[Attempted], *, started_at: datetime) -> Working: ...

    def replaying(
        self, attempts: Sequence[Attempted], *, order_id: str, started_at: datetime
    ) -> Working:
        """As ``working``, but always traced, each message in a new trace linked to its old one."""
        ...

    def delivering(self, name: str, target: Target, window: Sequence[OutboxEntry]) -> Delivering:
        """``name`` is ``outbox.window`` or ``schd.flush``."""
        ...


class _Nothing:
    def __init__(self, entries: Sequence[OutboxEntry] = ()) -> None:
        self.entries = entries
        self.contexts: dict[MailboxId, str] = {}

    def ended(self, *, error: str | None = None) -> None:
        """Nobody is told."""

    def committed(self) -> None:
        """Nobody is told."""


class Untraced:
    """Tracing where no exporter is configured: contexts of senders pass through, no more."""

    def origin(self) -> str | None:
        return None

    def entered(self, traceparent: str | None) -> Entered:
        return Entered(traceparent, traceparent)

    def received(self, entered: Entered, message_id: MailboxId, *, since: datetime) -> None:
        """Nobody is told."""

    def working(
        self,
        attempts: Sequence[Attempted],  # noqa: ARG002
        *,
        started_at: datetime,  # noqa: ARG002
    ) -> Working:
        return _Nothing()

    def replaying(
        self,
        attempts: Sequence[Attempted],  # noqa: ARG002
        *,
        order_id: str,  # noqa: ARG002
        started_at: datetime,  # noqa: ARG002
    ) -> Working:
        return _Nothing()

    def delivering(
        self,
        name: str,  # noqa: ARG002
        target: Target,  # noqa: ARG002
        window: Sequence[OutboxEntry],
    ) -> Delivering:
        return _Nothing(window)


UNTRACED = Untraced()
