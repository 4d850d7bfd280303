"""Flights that leave the own database: what is told of it, and what is written first (spec 5.4)."""

from collections.abc import Collection, Sequence
from datetime import datetime

from msgexchange.codec.encode import encode
from msgexchange.flight.past import PastFlight, ending_events
from msgexchange.flight.state import FlightState
from msgexchange.ports import HistoryStore, NewEvent


def farewell(state: FlightState, timezone: str) -> list[NewEvent]:
    """What consumers hear of a flight that leaves: nothing if it was announced deleted."""
    return [
        NewEvent(
            target=event.target,
            type=event.type,
            partition_key=state.flid,
            flid=state.flid,
            message_id=state.last_message_id,
            state_version=event.state.version,
            operation_day=state.operation_day,
            payload=None if event.value is None else encode(event.value),
        )
        for event in ending_events(state, timezone)
    ]


class Unwritten(Exception):
    """Flights of this commit are not in history yet; write them, then commit again."""

    def __init__(self, flights: Sequence[FlightState]) -> None:
        super().__init__(f"{len(flights)} flights are not in history yet")
        self.flights = flights


class WayMaking:
    """Past flights make way for a plan only once history holds them at the version that leaves."""

    def __init__(self, history: HistoryStore | None) -> None:
        """``history`` None: flights may go unwritten (``history.discard``)."""
        self._history = history
        self._written: set[tuple[str, int]] = set()

    def confirm(self, leaving: Collection[FlightState]) -> None:
        """``Unwritten`` unless all of them were written."""
        if self._history is None:
            return
        missing = [state for state in leaving if (state.flid, state.version) not in self._written]
        if missing:
            raise Unwritten(missing)

    def write(self, flights: Sequence[FlightState], *, now: datetime) -> None:
        """Outside any transaction: history may be slow. ``HistoryFailed``."""
        assert self._history is not None
        self._history.write([PastFlight(state, now) for state in flights])
        self._written.update((state.flid, state.version) for state in flights)

    def gone(self) -> None:
        """What was written has left, or was decided anew: forget it."""
        self._written.clear()
