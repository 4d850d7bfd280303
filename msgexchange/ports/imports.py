"""Own store: flights brought in from another system, and handed out (spec 5.9)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgexchange.flight.state import FlightState
from msgexchange.ids import Flid
from msgexchange.ports.pump import ChangeRow, NewEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Who brought flights in, why, and what became of it; for the audit."""

    by: str
    reason: str | None
    outcome: str
    at: datetime


class ImportTransaction(Protocol):
    """Holds the writer row and has ended every leader's right; commits on a clean exit."""

    def known(self, flids: Collection[Flid]) -> Collection[Flid]:
        """Which of them are flights here, or were before a sweep took them."""
        ...

    def load(
        self,
        flights: Sequence[FlightState],
        changes: Sequence[ChangeRow],
        events: Sequence[NewEvent],
        *,
        now: datetime,
    ) -> None: ...

    def flights(self, flids: Collection[Flid]) -> Mapping[Flid, FlightState]:
        """As they are stored now."""
        ...

    def record(self, imported: Imported) -> None:
        """Its line in the audit."""
        ...


class ImportStore(Protocol):
    def transaction(self) -> AbstractContextManager[ImportTransaction]: ...

    def states(self) -> Iterator[FlightState]:
        """Every flight, by FLID, of one moment."""
        ...
