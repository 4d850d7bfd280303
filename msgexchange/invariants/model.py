"""A naive flight model, written apart from the domain code, that I11 compares with (spec 2)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgexchange.flight.commands import Clear, Command, Replace, Set
from msgexchange.flight.messages import Decoded, Deletion, Message, Operation, Plan, PlannedFlight
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import Flid


@dataclass(slots=True)
class ModelFlight:
    """One flight as the rules of spec 2 say, in the plainest form."""

    day: str | None = None
    deleted: bool = False
    version: int = 0
    last_message_id: int = 0
    content: dict[str, Any] = field(default_factory=dict)

    def view(self) -> tuple[dict[str, Any], int, str | None, bool, int]:
        """What a stored flight is compared by."""
        return self.content, self.version, self.day, self.deleted, self.last_message_id

    def obey(self, message_id: int, commands: tuple[Command, ...]) -> None:
        self.version += 1
        self.last_message_id = message_id
        for command in commands:
            if isinstance(command, Set):
                self.content[command.name] = command.value
            elif isinstance(command, Replace):
                self.content[command.name] = command.items
            elif isinstance(command, Clear):
                self.content.pop(command.name, None)


def flids_of(decoded: Decoded | None) -> set[str]:
    """Flights a message is about; none where it cannot be applied."""
    match decoded:
        case Message(content=Plan(flights=flights)):
            return {flight.flid for flight in flights}
        case Message(content=Operation(blocks=blocks)):
            return {block.flid for block in blocks}
        case Message(content=Deletion(flids=flids)):
            return set(flids)
        case _:
            return set()


class Model:
    """Applies messages that are known to have succeeded, in the order they did.

    ``ended``: the version at which a flight's last swept life ended; its next life goes on there.
    """

    def __init__(self, ended: Mapping[Flid, int], imported: Sequence[FlightState] = ()) -> None:
        """``imported``: what flights that no message brought began with."""
        self._ended = ended
        self.flights: dict[str, ModelFlight] = {
            state.flid: ModelFlight(
                day=state.operation_day.isoformat() if state.operation_day else None,
                deleted=state.status is FlightStatus.DELETED,
                version=state.version,
                content=dict(state.content),
            )
            for state in imported
            if state.version > ended.get(state.flid, 0)
        }

    def apply(self, message_id: int, decoded: Decoded, past: Collection[str]) -> None:
        """One SUCCEEDED message; anything that could not have succeeded is left out.

        ``past``: flights it told something of in a life that was swept since.
        """
        match decoded:
            case Message(content=Plan(flights=flights)):
                for planned in flights:
                    self._plan(message_id, planned, past)
            case Message(content=Operation(blocks=blocks)):
                for block in blocks:
                    if block.flid not in past:
                        self._flight(block.flid).obey(message_id, block.commands)
            case Message(content=Deletion(flids=flids)):
                for flid in flids:
                    if flid not in past:
                        flight = self._flight(flid)
                        flight.deleted = True
                        flight.obey(message_id, ())
            case _:
                return

    def _plan(self, message_id: int, planned: PlannedFlight, past: Collection[str]) -> None:
        if planned.flid in past:
            return
        flight = self._flight(planned.flid)
        if flight.deleted:
            flight.deleted = False
            flight.content = {}
        flight.day = planned.operation_day.isoformat()
        flight.obey(message_id, planned.commands)

    def _flight(self, flid: Flid) -> ModelFlight:
        return self.flights.setdefault(flid, ModelFlight(version=self._ended.get(flid, 0)))
