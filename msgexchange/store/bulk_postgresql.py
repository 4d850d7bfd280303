"""Many rows in one statement, as PostgreSQL does it fastest: one bound value a statement (7.5).

Rows travel as one JSON array that ``json_to_recordset`` expands, keys as one array. The text of a
statement never changes, so the server plans it once a session.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import (
    Connection,
    Delete,
    FromClause,
    Row,
    Select,
    Table,
    Text,
    Update,
    any_,
    bindparam,
    cast,
    column,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON
from sqlalchemy.types import TypeEngine

from msgexchange.ports import MessageFault
from msgexchange.store.bulk import Among, ChangeRows, Given, InsertRows, RowValues, SelectRows


class PostgresqlBulk:
    """The same promises as ``PortableBulk``; the contract suite runs on both."""

    def insert(self, table: Table) -> InsertRows:
        rows = _expanded({column.name: column.type for column in table.columns})
        names = list(rows.c.keys())
        statement = insert(table).from_select(names, select(*(rows.c[name] for name in names)))

        def run(connection: Connection, values: Sequence[RowValues]) -> None:
            if values:
                connection.execute(statement, {"rows": _json(values)})

        return run

    def change(
        self, given: Mapping[str, TypeEngine[Any]], build: Callable[[Given], Update | Delete]
    ) -> ChangeRows:
        rows = _expanded(given)
        statement = build(lambda name: rows.c[name])

        def run(connection: Connection, values: Sequence[RowValues]) -> int:
            if not values:
                return 0
            return connection.execute(statement, {"rows": _json(values)}).rowcount

        return run

    def select(self, key: TypeEngine[Any], build: Callable[[Among], Select[Any]]) -> SelectRows:
        keys = bindparam("keys", type_=ARRAY(key))
        statement = build(lambda column: column == any_(keys))

        def run(connection: Connection, among: Collection[Any]) -> Sequence[Row[Any]]:
            if not among:
                return []
            return connection.execute(statement, {"keys": list(among)}).all()

        return run


def _expanded(types: Mapping[str, TypeEngine[Any]]) -> FromClause:
    array = cast(bindparam("rows", type_=Text()), JSON)
    columns = (column(name, type_) for name, type_ in types.items())
    return (
        func.json_to_recordset(array)
        .table_valued(*columns, name="r")
        .render_derived(with_types=True)
    )


def _json(rows: Sequence[RowValues]) -> str:
    try:
        return orjson.dumps(rows, default=_plain).decode()
    except orjson.JSONEncodeError as error:
        raise MessageFault(f"the own database cannot take a value: {error}") from error


def _plain(value: object) -> object:
    match value:
        case bytes():
            return "\\x" + value.hex()
        case Mapping():
            return dict(value)
        case _:
            raise TypeError(f"a {type(value).__name__} has no column form")
