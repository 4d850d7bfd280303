"""Which column holds which name of a flight, to write and to read (spec 1.3, 2.3)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgexchange.codec.catalogue import Group, GroupShape
from msgexchange.codec.columns import DETAIL_COLUMNS, EXCEPTION_COLUMNS, SEQUENCE_COLUMN

MADE_FOR: Mapping[tuple[str, str | None], tuple[str, str | None]] = {
    ("flight_gate", None): ("GTDT", "GTNO"),
    ("flight_checkin", None): ("CKDT", "CKNO"),
    ("flight_belt", None): ("CLDT", "CLNO"),
    ("flight_stand_plan", None): ("STDT", "STNO"),
    ("flight_chute", None): ("CHDT", "CHNO"),
    ("flight_delay", None): ("DELY", None),
    ("flight_bridge_op", None): ("BRDT", "BRNO"),
    ("flight_chock_op", None): ("CHOK", "CONO"),
    ("flight_route_point", "ROUT"): ("ROUT", "RONO"),
    ("flight_route_point", "ERUT"): ("ERUT", "RONO"),
}
"""Which collection, and which sequence, each place in the detail tables was made for."""


class Place(NamedTuple):
    """Where a collection's items lie; ``route_kind`` tells two in one table apart."""

    table: str
    route_kind: str | None


def all_places() -> list[Place]:
    return [Place(table, route_kind) for table, route_kind in MADE_FOR]


def single_columns(groups: Iterable[Group], shape: GroupShape) -> dict[str, str]:
    return {
        group.name: column
        for group in groups
        if group.shape is shape and (column := group.columns.get("")) is not None
    }


def with_column(columns: Mapping[str, str | None]) -> dict[str, str]:
    return {field: column for field, column in columns.items() if column is not None}


def item_columns(group: Group) -> dict[str, str]:
    columns = with_column(group.columns)
    if group.sequence is not None:
        columns.setdefault(group.sequence, SEQUENCE_COLUMN)
    return columns


def readable(
    mapped: Mapping[str, str], columns: Sequence[str], made_for: Callable[[str], str]
) -> tuple[tuple[str, str], ...]:
    """(column, name) of every column, the catalogue's name before the one it was made for."""
    names = {column: made_for(column) for column in columns}
    names |= {column: name for name, column in mapped.items()}
    return tuple(names.items())


def readable_exceptions(
    mapped: Mapping[str, Mapping[str, str]],
) -> tuple[tuple[str, str, str], ...]:
    names = {column: (column[:4].upper(), column[5:].upper()) for column in EXCEPTION_COLUMNS}
    for name, columns in mapped.items():
        names |= {column: (name, field) for field, column in columns.items()}
    return tuple((column, name, field) for column, (name, field) in names.items())


def readable_items(place: Place, mapped: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    names = {column: column.rstrip("_").upper() for column in DETAIL_COLUMNS[place.table]}
    sequence = MADE_FOR[place.table, place.route_kind][1]
    if sequence is not None:
        names[SEQUENCE_COLUMN] = sequence
    names |= {column: field for field, column in mapped.items()}
    return tuple(names.items())
