"""What the catalogue does not know, kept as it came (spec 1.1 unknown, 1.4 extras)."""

from collections.abc import Iterator

from msgexchange.codec.document import Element
from msgexchange.codec.reading import Reading
from msgexchange.flight.state import Json

CLASH_PREFIX = "x:"
"""No local name contains a colon, so a prefixed name clashes with nothing."""


class Extras:
    """Values by name; a name seen more than once has all its values, in order."""

    __slots__ = ("_reading", "_values", "_where")

    def __init__(self, reading: Reading, where: str) -> None:
        self._reading = reading
        self._where = where
        self._values: dict[str, list[Json]] = {}

    def element(self, element: Element, *, taken: bool = False) -> None:
        """Keep and report an unknown element whole."""
        value = structure(self._reading, self._where, element)
        self._keep(element.name, value, taken=taken)

    def attribute(self, name: str, value: str, *, taken: bool = False) -> None:
        """Keep and report an unknown attribute, or a text nobody expected."""
        self._reading.check_value(self._where, name, value)
        self._keep(name, value, taken=taken)

    def attributes_of(self, element: Element) -> None:
        """Keep the attributes of an element whose own value stands under its name."""
        if element.attributes:
            for name, _ in element.attributes:
                self._reading.report(name)
            bare = Element(element.name, element.attributes)
            value = structure(self._reading, self._where, bare)
            self._values.setdefault(CLASH_PREFIX + element.name, []).append(value)

    def items(self) -> Iterator[tuple[str, Json]]:
        for name, values in self._values.items():
            yield name, values[0] if len(values) == 1 else tuple(values)

    def _keep(self, name: str, value: Json, *, taken: bool) -> None:
        self._reading.report(self._reading.check_value(self._where, name, name))
        self._values.setdefault(CLASH_PREFIX + name if taken else name, []).append(value)


def structure(reading: Reading, where: str, element: Element) -> Json:
    """An element as plain data: a bare leaf is its text, anything else a map."""
    if not element.children and not element.attributes:
        return reading.check_value(where, element.name, element.text)
    return structure_map(reading, where, element)


def structure_map(reading: Reading, where: str, element: Element) -> dict[str, Json]:
    """Attributes and children by local name, own text as the text field; a name seen more than
    once has a tuple of its values.
    """
    values: dict[str, list[Json]] = {}
    for name, value in element.attributes:
        reading.check_value(where, name, name)
        values.setdefault(name, []).append(reading.check_value(where, name, value))
    for child in element.children:
        reading.check_value(where, child.name, child.name)
        values.setdefault(child.name, []).append(structure(reading, where, child))
    if element.text:
        text = reading.check_value(where, element.name, element.text)
        values.setdefault(reading.catalogue.envelope.text_field, []).append(text)
    return {name: seen[0] if len(seen) == 1 else tuple(seen) for name, seen in values.items()}
