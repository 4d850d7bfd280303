"""What a decoded message asks of one flight (spec 2.2)."""

from dataclasses import dataclass
from typing import TypeAlias

from msgexchange.flight.state import Item, Json


@dataclass(frozen=True, slots=True)
class Set:
    """Give a scalar, an exception, a text group or an extra its whole new value."""

    name: str
    value: Json


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace a collection whole, in message order; no items = present and empty."""

    name: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Clear:
    """Make a name absent."""

    name: str


Command: TypeAlias = Set | Replace | Clear
