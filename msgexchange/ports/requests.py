"""Own store: requests to the AODB (spec 5.1)."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.request import Request


@dataclass(frozen=True, slots=True)
class OutboundEntry:
    """The oldest event that waits for the mailbox, with the request it sends."""

    event_id: EventId
    text: str
    attempts: int
    next_attempt_at: datetime | None
    request: Request


class RequestTransaction(Protocol):
    """Under the writer row's lock: no other request comes or goes meanwhile."""

    def open_requests(self) -> Mapping[str, Request]:
        """By kind; there is at most one of a kind."""
        ...

    def kinds_by(self, requested_by: str) -> frozenset[str]:
        """Kinds that this one has asked for, open or closed."""
        ...

    def oldest_waiting_at(self) -> datetime | None:
        """When the oldest message that is not terminal was taken in, None without one."""
        ...

    def take_seqn(self) -> int:
        """The SEQN of the next outbound message; no other gets it before the counter wraps."""
        ...

    def close(self, request: Request) -> None:
        """Write the end of an open request."""
        ...

    def register(self, request: Request, text: str, *, reason: str | None) -> Request:
        """Write a new request with its outbound event and its audit row; with the event's id."""
        ...


class RequestStore(Protocol):
    def transaction(self) -> AbstractContextManager[RequestTransaction]:
        """Any process may: it takes the writer row, and applies no message."""
        ...

    def leader_transaction(self, fence: Fence) -> AbstractContextManager[RequestTransaction]: ...

    def recent(self, *, every: bool, limit: int) -> Sequence[Request]:
        """Open requests or, with ``every``, closed ones too; the newest first."""
        ...


class OutboundStore(Protocol):
    """MAILBOX:out, an ordered target (spec 4.5)."""

    def next(self) -> OutboundEntry | None:
        """The oldest pending event and its request as they are now."""
        ...

    def begin(self, fence: Fence, entry: OutboundEntry, *, after: int, now: datetime) -> bool:
        """Durably say, before the insert, that it may have been made; ``after`` is kept from the
        first try. False if the request was closed meanwhile: nothing is to be sent.
        """
        ...

    def sent(self, fence: Fence, entry: OutboundEntry, outbound_id: int, *, now: datetime) -> None:
        """The row is there: event SENT, and the request too unless it was closed meanwhile."""
        ...

    def cancel(self, fence: Fence, entry: OutboundEntry, reason: str) -> None:
        """The request is closed and nothing was written: event CANCELLED."""
        ...

    def charge(
        self,
        fence: Fence,
        entry: OutboundEntry,
        error: str,
        *,
        next_attempt_at: datetime | None,
        closes: bool,
        now: datetime,
    ) -> None:
        """One more failure; without a next attempt the event is DEAD, and where it ``closes`` the
        request FAILED.
        """
        ...

    def last_row(self) -> int | None:
        """The mailbox row of the request that was sent last, None before the first."""
        ...

    def sent_often(self, *, since: datetime) -> Sequence[tuple[Request, str]]:
        """Requests whose insert was begun more than once, with their text: those that are open or
        were sent since then.
        """
        ...

    def check_fence(self, fence: Fence) -> None: ...
