"""A request to the AODB: what it asks for, and its life (spec 5.1)."""

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from msgexchange.ids import EventId, MailboxId, RequestId

DAYS_MAX = 31
"""One plan request covers no more days."""
SEQN_MAX = 999_999
SCAN_COMMITS_WITHIN = timedelta(seconds=5)
"""A row that is stamped as taken in is seen by others no later; own statements end before."""
PLAN = "plan"
"""The kind of every plan request, whatever its days."""


class RequestState(StrEnum):
    """REGISTERED waits to be sent, SENDING may have been sent, SENT is in the mailbox."""

    REGISTERED = "REGISTERED"
    SENDING = "SENDING"
    SENT = "SENT"
    DONE = "DONE"
    EXPIRED = "EXPIRED"
    FAILED = "FAILED"


OPEN = frozenset({RequestState.REGISTERED, RequestState.SENDING, RequestState.SENT})
"""One request of a kind is in one of these; an answer may come for the last two."""


@dataclass(frozen=True, slots=True)
class PlanWanted:
    """The plan of every day from the first to the last; ``ValueError`` for an impossible range."""

    first_day: date
    last_day: date

    def __post_init__(self) -> None:
        if self.last_day < self.first_day:
            raise ValueError(f"the last day {self.last_day} is before the first {self.first_day}")
        if (self.last_day - self.first_day).days >= DAYS_MAX:
            raise ValueError(f"more than {DAYS_MAX} days; ask for them in several requests")

    @property
    def kind(self) -> str:
        return PLAN

    @property
    def days(self) -> frozenset[date]:
        amount = (self.last_day - self.first_day).days + 1
        return frozenset(self.first_day + timedelta(days=n) for n in range(amount))


@dataclass(frozen=True, slots=True)
class ReferenceWanted:
    """All reference data of one type."""

    type: str

    @property
    def kind(self) -> str:
        return f"reference:{self.type}"

    @property
    def days(self) -> frozenset[date]:
        return frozenset()


Wanted: TypeAlias = PlanWanted | ReferenceWanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, open or closed.

    ``outbound_after`` is the mailbox's newest id before the first try, ``outbound_id`` the row
    that was written; ``sends`` how often a write was begun, ``resent`` how many requests for the
    same went unanswered before this one. ``error`` says why it was closed without an answer.
    """

    request_id: RequestId
    wanted: Wanted
    state: RequestState = RequestState.REGISTERED
    seqn: str
    requested_by: str
    created_at: datetime
    event_id: EventId | None = None
    outbound_after: int | None = None
    outbound_id: int | None = None
    sends: int = 0
    resent: int = 0
    send_started_at: datetime | None = None
    sent_at: datetime | None = None
    finished_at: datetime | None = None
    days_done: frozenset[date] = frozenset()
    answer_message_id: MailboxId | None = None
    matched_by: str | None = None
    error: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    def closed(self, state: RequestState, error: str | None, *, now: datetime) -> "Request":
        """The same request at its end."""
        assert state not in OPEN
        return replace(self, state=state, error=error, finished_at=now)

    def due_at(self, timeout: timedelta) -> datetime:
        """When it has been without an answer for too long.

        Counted from its row in the mailbox; while that is not known, from the first try; where
        nothing could be tried, from its registration.
        """
        return (self.sent_at or self.send_started_at or self.created_at) + timeout


def next_seqn(current: int) -> int:
    """The counter's next value; it begins anew at 1 after six digits."""
    return 1 if current >= SEQN_MAX else current + 1


def written_seqn(current: int) -> str:
    """Six digits."""
    return f"{current:06d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPolicy:
    """When a request is given up, and how often the same is asked again."""

    timeout: timedelta = timedelta(minutes=10)
    resend: int = 0


def overdue(
    request: Request, policy: ExpiryPolicy, *, now: datetime, oldest_waiting_at: datetime | None
) -> bool:
    """True when it is over its time and no answer that came in time can be waiting.

    ``oldest_waiting_at``: when the oldest unfinished message was taken in, None if none waits.
    """
    due_at = request.due_at(policy.timeout)
    return now > due_at + SCAN_COMMITS_WITHIN and (
        oldest_waiting_at is None or oldest_waiting_at > due_at
    )
