"""Many rows in one statement; the portable form, and what every form promises (spec 2.3, 7.5).

A statement is built once, when a store opens, and run with whatever rows or keys there are.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Row,
    Select,
    Table,
    Update,
    bindparam,
    insert,
)
from sqlalchemy.types import TypeEngine

RowValues: TypeAlias = Mapping[str, Any]
"""One row by column name; every row of one call has the same names."""

InsertRows: TypeAlias = Callable[[Connection, Sequence[RowValues]], None]
ChangeRows: TypeAlias = Callable[[Connection, Sequence[RowValues]], int]
"""Says how many rows of the table were changed."""
SelectRows: TypeAlias = Callable[[Connection, Collection[Any]], Sequence[Row[Any]]]
"""The rows with any of these keys, in no order."""

Given: TypeAlias = Callable[[str], ColumnElement[Any]]
"""A value of the row at hand, by name."""
Among: TypeAlias = Callable[[ColumnElement[Any]], ColumnElement[bool]]
"""True for rows whose column is one of the keys."""

KEYS_MAX = 1_000
"""Oracle takes no more in one IN list."""


class Bulk(Protocol):
    """Builds statements for many rows; none of them runs anything for no rows."""

    def insert(self, table: Table) -> InsertRows:
        """Rows name every column of the table."""
        ...

    def change(
        self, given: Mapping[str, TypeEngine[Any]], build: Callable[[Given], Update | Delete]
    ) -> ChangeRows:
        """``build`` writes the statement for one row of the ``given`` values."""
        ...

    def select(self, key: TypeEngine[Any], build: Callable[[Among], Select[Any]]) -> SelectRows:
        """``build`` writes the query around a condition on its key columns."""
        ...


class PortableBulk:
    """``executemany`` and IN lists: any database's form."""

    def insert(self, table: Table) -> InsertRows:
        statement = insert(table).values(
            {column.name: bindparam(column.name, type_=column.type) for column in table.columns}
        )

        def run(connection: Connection, rows: Sequence[RowValues]) -> None:
            if rows:
                connection.execute(statement, list(rows))

        return run

    def change(
        self, given: Mapping[str, TypeEngine[Any]], build: Callable[[Given], Update | Delete]
    ) -> ChangeRows:
        # A parameter named like a column would be taken for that column's new value.
        names = {name: f"given_{name}" for name in given}
        statement = build(lambda name: bindparam(names[name], type_=given[name]))

        def run(connection: Connection, rows: Sequence[RowValues]) -> int:
            if not rows:
                return 0
            parameters = [{names[name]: row[name] for name in names} for row in rows]
            return connection.execute(statement, parameters).rowcount

        return run

    def select(self, key: TypeEngine[Any], build: Callable[[Among], Select[Any]]) -> SelectRows:
        keys = bindparam("keys", expanding=True, type_=key)
        statement = build(lambda column: column.in_(keys))

        def run(connection: Connection, among: Collection[Any]) -> Sequence[Row[Any]]:
            rows: list[Row[Any]] = []
            left = iter(among)
            while chunk := list(islice(left, KEYS_MAX)):
                rows += connection.execute(statement, {"keys": chunk})
            return rows

        return run
