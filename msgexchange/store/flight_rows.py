"""A flight's state as rows and back, by the catalogue; exact both ways (spec 2.1, 2.3).

A name or field without a column lies in EXTRA, by its name. A column that the catalogue gives no
name is read under the name it was made for, so that a state outlives the catalogue it was written
under. A collection found elsewhere than this catalogue would put it is a *stray*: the next write
moves it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from msgexchange.codec.catalogue import Catalogue, GroupShape
from msgexchange.codec.columns import (
    DETAIL_COLUMNS,
    SCALAR_COLUMNS,
    SEQUENCE_COLUMN,
    TEXT_COLUMNS,
)
from msgexchange.codec.encode import encode, parse_content, parse_json
from msgexchange.flight.state import FlightState, FlightStatus, Item, Json
from msgexchange.ids import Flid, MailboxId
from msgexchange.store.flight_columns import (
    MADE_FOR,
    Place,
    all_places,
    item_columns,
    readable,
    readable_exceptions,
    readable_items,
    single_columns,
    with_column,
)
from msgexchange.store.tables import flight_schd, names_of

Values: TypeAlias = Mapping[str, Any]
"""One row by column name."""

Strays: TypeAlias = Mapping[str, Place | None]
"""Collections found elsewhere than they belong: in this place, or in EXTRA (None)."""


@dataclass(frozen=True, slots=True)
class StoredFlight:
    """A flight as read, and what of it the next write must move."""

    state: FlightState
    strays: Strays


@dataclass(frozen=True, slots=True)
class DetailValues:
    """One row of a detail table; ``columns`` by name, the sequence included."""

    place: Place
    ordinal: int
    columns: Values
    extra: str | None


class FlightRows:
    """The mapping one catalogue asks for."""

    def __init__(self, catalogue: Catalogue) -> None:
        groups = catalogue.groups.values()
        self._scalars = single_columns(groups, GroupShape.SCALAR)
        self._texts = single_columns(groups, GroupShape.TEXT)
        self._exceptions = {
            group.name: with_column(group.columns)
            for group in groups
            if group.shape is GroupShape.EXCEPTION
        }
        self._places = {
            group.name: Place(group.table, group.route_kind)
            for group in groups
            if group.shape is GroupShape.COLLECTION and group.table is not None
        }
        self._item_columns = {name: item_columns(catalogue.groups[name]) for name in self._places}
        self._read_scalars = readable(self._scalars, SCALAR_COLUMNS, str.upper)
        self._read_texts = readable(self._texts, TEXT_COLUMNS, lambda name: name[:4].upper())
        self._read_exceptions = readable_exceptions(self._exceptions)
        self._names = {place: MADE_FOR[place.table, place.route_kind][0] for place in all_places()}
        self._names |= {place: name for name, place in self._places.items()}
        self._read_items = {
            place: readable_items(place, self._item_columns.get(name, {}))
            for place, name in self._names.items()
        }

    def place(self, name: str, value: Json | None) -> Place | None:
        """Where these items belong; None for EXTRA, and for what is not a list of items."""
        place = self._places.get(name)
        return place if place is not None and value is not None and _is_items(value) else None

    def flight_row(self, state: FlightState, *, created_at: datetime, now: datetime) -> Values:
        """The FLIGHT_SCHD row."""
        row: dict[str, Any] = dict.fromkeys(_FLIGHT_COLUMNS)
        extra = _Extra({}, {})
        empty = []
        for name, value in state.content.items():
            if name in self._scalars and isinstance(value, str):
                row[self._scalars[name]] = value
            elif name in self._texts:
                row[self._texts[name]] = encode(value).decode()
            elif self.place(name, value):
                if not value:
                    empty.append(name)
            elif name in self._exceptions and isinstance(value, Mapping):
                self._put_exception(row, extra, name, value)
            else:
                extra.names[name] = value
        row |= {
            "flid": state.flid,
            "operation_day": state.operation_day,
            "status": state.status.value,
            "state_version": state.version,
            "last_message_id": state.last_message_id,
            "empty_groups": encode(sorted(empty)).decode() if empty else None,
            "extra": extra.text(),
            "created_at": created_at,
            "updated_at": now,
        }
        return row

    def detail_rows(self, name: str, state: FlightState) -> list[dict[str, Any]]:
        """The rows of a collection that has a place, in message order."""
        place = self._places[name]
        columns = self._item_columns[name]
        items = state.content[name]
        assert isinstance(items, tuple)
        rows = []
        for ordinal, item in enumerate(items, 1):
            assert isinstance(item, Mapping)
            row: dict[str, Any] = dict.fromkeys((SEQUENCE_COLUMN, *DETAIL_COLUMNS[place.table]))
            rest: dict[str, Json] = {}
            for field, value in item.items():
                if field in columns and isinstance(value, str):
                    row[columns[field]] = value
                else:
                    rest[field] = value
            if place.route_kind is not None:
                row["route_kind"] = place.route_kind
            row["flid"] = state.flid
            row["ordinal"] = ordinal
            row["extra"] = encode(rest).decode() if rest else None
            row["record_version"] = state.version
            rows.append(row)
        return rows

    def flight(self, row: Values, details: Iterable[DetailValues]) -> StoredFlight:
        """The flight of a FLIGHT_SCHD row and its detail rows, which come in any order."""
        content: dict[str, Json] = {
            name: value for column, name in self._read_scalars if (value := row[column]) is not None
        }
        for column, name in self._read_texts:
            if row[column] is not None:
                content[name] = parse_json(row[column])
        strays = self._read_collections(content, details)
        content.update(dict.fromkeys(_names(row["empty_groups"]), ()))
        self._read_exceptions_of(row, content)
        if row["extra"]:
            strays |= self._read_extra(content, row["extra"])
        state = FlightState(
            flid=Flid(row["flid"]),
            operation_day=row["operation_day"],
            status=FlightStatus(row["status"]),
            version=row["state_version"],
            last_message_id=MailboxId(row["last_message_id"]),
            content=content,
        )
        return StoredFlight(state, strays)

    def _put_exception(
        self, row: dict[str, Any], extra: "_Extra", name: str, value: Mapping[str, Json]
    ) -> None:
        columns = self._exceptions[name]
        mapped = {
            columns[field]: said
            for field, said in value.items()
            if field in columns and isinstance(said, str)
        }
        if not mapped:
            extra.names[name] = value
            return
        row.update(mapped)
        rest = {
            field: said
            for field, said in value.items()
            if field not in columns or not isinstance(said, str)
        }
        if rest:
            extra.fields[name] = rest

    def _read_collections(
        self, content: dict[str, Json], details: Iterable[DetailValues]
    ) -> dict[str, Place | None]:
        groups: dict[Place, list[DetailValues]] = {}
        for detail in details:
            groups.setdefault(detail.place, []).append(detail)
        strays: dict[str, Place | None] = {}
        for place, rows in groups.items():
            name = self._names[place]
            rows.sort(key=lambda detail: detail.ordinal)
            content[name] = tuple(_item(row, self._read_items[place]) for row in rows)
            if self._places.get(name) != place:
                strays[name] = place
        return strays

    def _read_exceptions_of(self, row: Values, content: dict[str, Json]) -> None:
        exceptions: dict[str, dict[str, Json]] = {}
        for column, name, field in self._read_exceptions:
            value = row[column]
            if value is not None:
                exceptions.setdefault(name, {})[field] = value
        content.update(exceptions)

    def _read_extra(self, content: dict[str, Json], text: str) -> dict[str, Place | None]:
        extra = parse_content(text)
        fields = extra.get("fields", {})
        names = extra.get("names", {})
        assert isinstance(fields, Mapping)
        assert isinstance(names, Mapping)
        for name, rest in fields.items():
            known = content.get(name, {})
            assert isinstance(known, Mapping)
            assert isinstance(rest, Mapping)
            content[name] = {**known, **rest}
        content.update(names)
        return {name: None for name, value in names.items() if self.place(name, value)}


@dataclass(frozen=True, slots=True)
class _Extra:
    """EXTRA of FLIGHT_SCHD: whole names, and fields of exceptions that have other columns."""

    names: dict[str, Json]
    fields: dict[str, Json]

    def text(self) -> str | None:
        parts = {
            part: value for part, value in (("fields", self.fields), ("names", self.names)) if value
        }
        return encode(parts).decode() if parts else None


_FLIGHT_COLUMNS = names_of(flight_schd)


def _names(array: str | None) -> list[str]:
    return [] if array is None else [str(name) for name in parse_json(array)]


def _is_items(value: Json) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, Mapping) for item in value)


def _item(row: DetailValues, names: Sequence[tuple[str, str]]) -> Item:
    item: dict[str, Json] = {
        field: value for column, field in names if (value := row.columns[column]) is not None
    }
    if row.extra is not None:
        item |= parse_content(row.extra)
    return item
