"""The history sweep: flights past their day are written to history, then deleted (spec 5.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from msgexchange.clock import Clock
from msgexchange.flight.past import PastFlight, SweepPolicy, ended, is_past
from msgexchange.ids import Fence
from msgexchange.pipeline.daily import Done, Slices
from msgexchange.pipeline.leaving import farewell
from msgexchange.ports import (
    FlightPlace,
    HistoryStore,
    StandingFlight,
    SweepStore,
)

NOWHERE = "nothing swept: history.store is none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRules:
    """``discards``: flights may go unwritten (``history.discard``)."""

    policy: SweepPolicy
    discards: bool = False
    timezone: str
    flights_max: int = 25
    """Of one slice: a few milliseconds of the writer row."""


class HistorySweep:
    """A ``Duty``. Never deletes what is not written, unless the site said it may."""

    def __init__(
        self,
        *,
        store: SweepStore,
        history: HistoryStore | None,
        clock: Clock,
        fence: Fence,
        rules: SweepRules,
    ) -> None:
        self._store = store
        self._history = history
        self._clock = clock
        self._fence = fence
        self._rules = rules

    def slices(self, *, now: datetime) -> Slices:
        """From the oldest operation day to the newest past one, then flights without a day."""
        if self._history is None and not self._rules.discards:
            return Done(NOWHERE)
        policy = self._rules.policy
        swept = 0
        place: FlightPlace | None = None
        while page := self._store.standing(
            until=policy.last_day(now),
            silent_since=now - policy.silence,
            after=place,
            limit=self._rules.flights_max,
        ):
            swept += self._sweep([flight for flight in page if self._is_past(flight, now)])
            last = page[-1].state
            place = FlightPlace(last.operation_day, last.flid)
            yield
        while self._history is not None and self._history.tidy():
            yield
        where = "discarded" if self._history is None else "written to history and deleted"
        return Done(f"{swept} flights {where}")

    def _is_past(self, flight: StandingFlight, now: datetime) -> bool:
        return is_past(
            flight.state, changed_at=flight.changed_at, now=now, policy=self._rules.policy
        )

    def _sweep(self, past: Sequence[StandingFlight]) -> int:
        if not past:
            return 0
        now = self._clock.now()
        if self._history is not None:
            self._history.write([PastFlight(flight.state, now) for flight in past])
        read = {flight.state.flid: flight.state.version for flight in past}
        with self._store.transaction(self._fence) as transaction:
            # What changed since it was written to history is not the flight that was judged.
            leaving = [
                flight.state
                for flid, flight in transaction.flights(read).items()
                if flight.state.version == read[flid] and self._is_past(flight, now)
            ]
            transaction.remove(
                [ended(state) for state in leaving],
                [event for state in leaving for event in farewell(state, self._rules.timezone)],
                now=now,
            )
        return len(leaving)
