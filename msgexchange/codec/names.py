"""Names for people beside a flight's codes, where reference data has them (spec 5.2)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgexchange.codec.catalogue import Catalogue
from msgexchange.flight.reference import Record, RecordKey
from msgexchange.flight.state import Content, Json


@dataclass(frozen=True, slots=True)
class Code:
    """A code of a flight's state: ``place`` as the catalogue writes it, the record it names, and
    the record's field that has its name.
    """

    place: str
    record: RecordKey
    label: str

    def name(self, records: Mapping[RecordKey, Record]) -> str | None:
        """The record's name; None where nobody told it."""
        found = records.get(self.record, {}).get(self.label)
        return found if isinstance(found, str) and found else None


def codes_of(catalogue: Catalogue, content: Content) -> list[Code]:
    """Every code of this state that a reference type is about, each once."""
    found = {
        Code(place, (type_.name, code), type_.label): None
        for type_ in catalogue.references.values()
        for place in type_.codes
        for code in _values(content, place)
        if code
    }
    return list(found)


def _values(content: Content, place: str) -> Iterator[str]:
    name, _, field = place.partition("/")
    value: Json = content.get(name, "")
    for one in value if isinstance(value, tuple) else (value,):
        inner = one.get(field, "") if field and isinstance(one, Mapping) else one
        if isinstance(inner, str):
            yield inner
