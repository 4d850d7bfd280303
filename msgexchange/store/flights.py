"""FLIGHT_SCHD and its nine detail tables: read whole, written where they changed (spec 2.3)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CompoundSelect,
    Connection,
    Select,
    String,
    cast,
    delete,
    literal_column,
    null,
    select,
    union_all,
    update,
)

from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.columns import DETAIL_COLUMNS, SEQUENCE_COLUMN
from msgexchange.ids import Flid
from msgexchange.ports import FlightWrite, MessageFault
from msgexchange.store.bulk import Among, Bulk, ChangeRows, Given
from msgexchange.store.flight_columns import Place, all_places
from msgexchange.store.flight_rows import DetailValues, FlightRows, StoredFlight, Strays
from msgexchange.store.tables import FLID_CHARS, details, flight_schd, names_of
from msgexchange.store.types import AsReceived

FLIGHT_COLUMNS = names_of(flight_schd)
_ITEM_COLUMNS_MAX = max(len(columns) for columns in DETAIL_COLUMNS.values())
_PLACES = {(place.table, place.route_kind): place for place in all_places()}
_KEPT = ("flid", "created_at")
"""Columns of a known flight that a write leaves alone."""


@dataclass(slots=True)
class _Changes:
    """Rows of one write, gathered per statement."""

    inserts: list[Mapping[str, Any]] = field(default_factory=list)
    updates: list[Mapping[str, Any]] = field(default_factory=list)
    detail_deletes: dict[Place, list[Mapping[str, Any]]] = field(default_factory=dict)
    detail_inserts: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    items_deleted: dict[Place, int] = field(default_factory=dict)


class Flights:
    """Statements on flights; a transaction is the caller's."""

    def __init__(self, bulk: Bulk, catalogue: Catalogue) -> None:
        self._rows = FlightRows(catalogue)
        key = String(FLID_CHARS)
        self._select = bulk.select(
            key, lambda among: select(flight_schd).where(among(flight_schd.c.flid))
        )
        self._select_details = bulk.select(key, details_among)
        self._insert = bulk.insert(flight_schd)
        self._update = bulk.change(
            {name: flight_schd.c[name].type for name in FLIGHT_COLUMNS}
            | {"before_version": BigInteger()},
            _update_flight,
        )
        self._insert_details = {name: bulk.insert(table) for name, table in details.items()}
        self._delete_details = {place: _delete_details(bulk, place) for place in all_places()}

    def load(self, connection: Connection, flids: Collection[Flid]) -> dict[Flid, StoredFlight]:
        """The flights that are there, by FLID; two statements however many."""
        rows = self._select(connection, flids)
        return self.complete(connection, rows)

    def complete(
        self, connection: Connection, rows: Sequence[Sequence[Any]]
    ) -> dict[Flid, StoredFlight]:
        """The flights of these FLIGHT_SCHD rows with their details, in the order of the rows."""
        flights = [dict(zip(FLIGHT_COLUMNS, row, strict=True)) for row in rows]
        found: dict[str, list[DetailValues]] = {row["flid"]: [] for row in flights}
        for detail in self._select_details(connection, list(found)):
            found[detail.flid].append(detail_values(detail))
        return {Flid(row["flid"]): self._rows.flight(row, found[row["flid"]]) for row in flights}

    def write(
        self,
        connection: Connection,
        writes: Sequence[FlightWrite],
        strays: Mapping[Flid, Strays],
        *,
        now: datetime,
    ) -> None:
        """Insert new flights, update known ones, rewrite the groups that changed.

        ``MessageFault`` if a row is not what ``before`` says: somebody else wrote it.
        """
        changes = _Changes()
        for write in writes:
            self._plan_flight(changes, write, now)
            self._plan_details(changes, write, strays.get(write.after.flid, {}))
        self._insert(connection, changes.inserts)
        changed = self._update(connection, changes.updates)
        _expect("flight_schd", changed, len(changes.updates))
        for place, keys in changes.detail_deletes.items():
            gone = self._delete_details[place](connection, keys)
            _expect(place.table, gone, changes.items_deleted[place])
        for table, rows in changes.detail_inserts.items():
            self._insert_details[table](connection, rows)

    def _plan_flight(self, changes: _Changes, write: FlightWrite, now: datetime) -> None:
        row = self._rows.flight_row(write.after, created_at=now, now=now)
        if write.before is None:
            changes.inserts.append(row)
        else:
            changes.updates.append({**row, "before_version": write.before.version})

    def _plan_details(self, changes: _Changes, write: FlightWrite, strays: Strays) -> None:
        before = write.before.content if write.before else {}
        after = write.after.content
        for name in {**before, **after}:
            old, new = before.get(name), after.get(name)
            if old == new and name not in strays:
                continue
            held = strays[name] if name in strays else self._rows.place(name, old)
            if held and isinstance(old, tuple) and old:
                key = {"flid": write.after.flid}
                changes.detail_deletes.setdefault(held, []).append(key)
                changes.items_deleted[held] = changes.items_deleted.get(held, 0) + len(old)
            place = self._rows.place(name, new)
            if place and new:
                rows = self._rows.detail_rows(name, write.after)
                changes.detail_inserts.setdefault(place.table, []).extend(rows)


def details_among(among: Among) -> Select[Any]:
    """Every item of some flights in one result: table, flid, route kind, ordinal, columns."""
    branches: CompoundSelect[Any] = union_all(
        *(_branch(name, columns, among) for name, columns in DETAIL_COLUMNS.items())
    )
    return select(branches.subquery("d"))


def detail_values(row: Sequence[Any]) -> DetailValues:
    """One row of ``details_among``."""
    table, _, route_kind, ordinal, source_seq, *items, extra = row
    columns = dict(zip(DETAIL_COLUMNS[table], items, strict=False))
    columns[SEQUENCE_COLUMN] = source_seq
    return DetailValues(_PLACES[table, route_kind], ordinal, columns, extra)


def _branch(name: str, columns: Sequence[str], among: Among) -> Select[Any]:
    table = details[name]
    absent = cast(null(), AsReceived())
    kind = table.c.route_kind if "route_kind" in table.c else cast(null(), String(4))
    values = [table.c[column] for column in columns]
    padded = [*values, *[absent] * (_ITEM_COLUMNS_MAX - len(values))]
    return select(
        literal_column(f"'{name}'", String()).label("table_name"),
        table.c.flid,
        kind.label("route_kind"),
        table.c.ordinal,
        table.c[SEQUENCE_COLUMN],
        *(value.label(f"c{place}") for place, value in enumerate(padded, 1)),
        table.c.extra,
    ).where(among(table.c.flid))


def _update_flight(given: Given) -> Any:
    return (
        update(flight_schd)
        .where(
            flight_schd.c.flid == given("flid"),
            flight_schd.c.state_version == given("before_version"),
        )
        .values({name: given(name) for name in FLIGHT_COLUMNS if name not in _KEPT})
    )


def _delete_details(bulk: Bulk, place: Place) -> ChangeRows:
    table = details[place.table]

    def build(given: Given) -> Any:
        statement = delete(table).where(table.c.flid == given("flid"))
        if place.route_kind is not None:
            statement = statement.where(
                table.c.route_kind == literal_column(f"'{place.route_kind}'", String())
            )
        return statement

    return bulk.change({"flid": String(FLID_CHARS)}, build)


def _expect(table: str, changed: int, expected: int) -> None:
    if changed != expected:
        raise MessageFault(
            f"{table} holds {changed} of the {expected} rows that were read: "
            "something else writes this database"
        )
