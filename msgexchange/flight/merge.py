"""Apply commands to a state, and say what differs between two (spec 2.2, 1.4 ``changes``)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from msgexchange.flight.commands import Clear, Command, Replace, Set
from msgexchange.flight.state import Content, FlightState, Json
from msgexchange.ids import MailboxId


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different after; a name stands in exactly one of the three."""

    set: Content
    replaced: Content
    cleared: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.set or self.replaced or self.cleared)


def merge(content: Content, commands: Iterable[Command]) -> Content:
    """The content after every command in order; the argument stays as it is."""
    after = dict(content)
    for command in commands:
        match command:
            case Set(name, value):
                after[name] = value
            case Replace(name, items):
                after[name] = items
            case Clear(name):
                after.pop(name, None)
            case _:
                assert_never(command)
    return after


def apply(state: FlightState, commands: Iterable[Command], *, cause: MailboxId) -> FlightState:
    """The next state: version + 1, ``last_message_id`` = cause, every command in order."""
    return FlightState(
        flid=state.flid,
        operation_day=state.operation_day,
        status=state.status,
        version=state.version + 1,
        last_message_id=cause,
        content=merge(state.content, commands),
    )


def difference(before: Content, after: Content) -> Changes:
    """What turns ``before`` into ``after``: the ``changes`` of a msg event (spec 1.4)."""
    set_: dict[str, Json] = {}
    replaced: dict[str, Json] = {}
    for name, value in after.items():
        if name in before and before[name] == value:
            continue
        (replaced if isinstance(value, tuple) else set_)[name] = value
    cleared = tuple(sorted(name for name in before if name not in after))
    return Changes(set_, replaced, cleared)
