"""How much of a message is read before it is refused (``codec.limits.*``, spec 1.1)."""

from dataclasses import dataclass, fields

DEPTH_CEILING = 200
"""Deeper structures could not be written as event bytes: the JSON writer stops at 254 levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The same for every path a message takes.

    Over the first three: MALFORMED. Over the others: PROTOCOL.
    """

    text_bytes_max: int = 64 * 1024 * 1024
    """Size of the text as UTF-8."""
    depth_max: int = 32
    """Nested elements, the root being the first."""
    nodes_max: int = 2_000_000
    """Elements and attributes together: what bounds the memory a text of many tiny tags takes."""
    flights_max: int = 10_000
    """Flights of a plan."""
    records_max: int = 100_000
    """Records of a reference message."""
    items_max: int = 99
    """Items of a group."""
    value_characters_max: int = 4_000
    """Characters of one value, or of an unknown name."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise ValueError(f"{limit.name}: a limit is at least 1")
        if self.depth_max > DEPTH_CEILING:
            raise ValueError(f"depth_max: at most {DEPTH_CEILING}")
