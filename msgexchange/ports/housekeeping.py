"""Keeping house: flights to history, messages to the archive, old rows away (spec 5.4)."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Protocol

from msgexchange.flight.past import PastFlight
from msgexchange.flight.state import FlightState
from msgexchange.ids import Fence, Flid, MailboxId
from msgexchange.ports.failures import PortError
from msgexchange.ports.pump import NewEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """The last run of a daily job, for the operation day it was due on.

    ``finished_at`` None: it was begun and is not through. ``kept_since``: what is older may be
    gone by this job's hand.
    """

    job: str
    day: date
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    kept_since: datetime | None


class JobStore(Protocol):
    """JOB_RUN."""

    def last_run(self, job: str) -> JobRun | None: ...

    def begin(self, fence: Fence, job: str, day: date, *, now: datetime) -> None:
        """From now on the job's last run is this one, not through yet."""
        ...

    def note(self, fence: Fence, job: str, outcome: str) -> None:
        """Why a run that was begun is not through."""
        ...

    def finish(
        self,
        fence: Fence,
        job: str,
        outcome: str,
        *,
        kept_since: datetime | None,
        now: datetime,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class StandingFlight:
    """A flight of FLIGHT_SCHD with the time of its last change."""

    state: FlightState
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class FlightPlace:
    """How far a walk over the flights by operation day has come; those without a day come last."""

    day: date | None
    flid: Flid


class SweepTransaction(Protocol):
    """Holds the fence and the writer row; commits on a clean exit."""

    def flights(self, flids: Collection[Flid]) -> Mapping[Flid, StandingFlight]:
        """Those that are still there."""
        ...

    def remove(
        self,
        last: Collection[FlightState],
        events: Sequence[NewEvent],
        *,
        now: datetime,
    ) -> None:
        """Delete these flights with their details, remember at which version each ended, and
        append the events.
        """
        ...


class SweepStore(Protocol):
    def standing(
        self, *, until: date, silent_since: datetime, after: FlightPlace | None, limit: int
    ) -> Sequence[StandingFlight]:
        """Flights of operation days up to ``until``, then those without a day that have not
        changed since ``silent_since``; in walking order, from behind ``after``.
        """
        ...

    def transaction(self, fence: Fence) -> AbstractContextManager[SweepTransaction]: ...


class HistoryFailed(PortError):
    """The history store could not take, or give, what was asked; the text says why."""


class HistoryStore(Protocol):
    def write(self, flights: Sequence[PastFlight]) -> None:
        """Durable on return; written twice is the same as once. ``HistoryFailed``."""
        ...

    def lives(self, flid: Flid) -> Sequence[PastFlight]:
        """Every past life of a flight, oldest first. ``HistoryFailed``."""
        ...

    def tidy(self) -> bool:
        """A bounded piece of putting in order; True if there is more. ``HistoryFailed``."""
        ...


@dataclass(frozen=True, slots=True)
class Slice:
    """One bounded piece of work: how many rows it took care of, and where it came to.

    ``reached`` None: nothing is left behind it.
    """

    done: int
    reached: int | None


class ArchiveStore(Protocol):
    def archive(
        self,
        fence: Fence,
        *,
        after: MailboxId,
        ended_before: datetime,
        marks: bool,
        limit: int,
        now: datetime,
    ) -> Slice:
        """Move terminal messages that ended before then, and are marked where ``marks``, from
        behind id ``after``; dead letters only once discarded.
        """
        ...


class Kept(StrEnum):
    """What is kept for a time of its own."""

    CHANGES = "changes"
    SENT_EVENTS = "sent-events"
    PLANS = "plans"
    AUDIT = "audit"
    ATTEMPTS = "attempts"
    GAPS = "gaps"


def retention_job(kept: Kept) -> str:
    """The name of the daily job that deletes old rows of a kind."""
    return f"retention-{kept.value}"


class RetentionStore(Protocol):
    def drop(
        self, fence: Fence, kept: Kept, *, older_than: datetime, after: int, limit: int
    ) -> Slice:
        """Delete rows older than that, from behind ``after``, looking at ``limit`` of them."""
        ...
