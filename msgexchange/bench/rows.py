"""The rows a measured round left, and the least they cost to write again (the floors of 7.5).

Values are carried as PostgreSQL writes them, so that a floor pays for no conversion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import psycopg
from psycopg import sql
from sqlalchemy import URL, Table

from msgexchange.bench.servers import dsn
from msgexchange.store.tables import (
    details,
    flight_change,
    flight_schd,
    msg_event,
    msg_event_state,
    names_of,
    proc_state,
)

Row: TypeAlias = Sequence[str | None]
Connection: TypeAlias = "psycopg.Connection[tuple[str | None, ...]]"

GATES = details["flight_gate"]
FLIGHT_TABLES = (flight_schd, *details.values())
WRITTEN_ONCE = (proc_state, flight_change, msg_event, msg_event_state)
"""Every message leaves rows of its own in these."""


@dataclass(slots=True)
class Written:
    """What one message wrote."""

    message: Row
    flight: Row | None = None
    changes: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    states: list[Row] = field(default_factory=list)
    gates: list[Row] = field(default_factory=list)


def connect(url: URL) -> Connection:
    """A plain connection that commits when told."""
    return psycopg.connect(dsn(url))


def written_after(url: URL, message_id: int) -> list[Written]:
    """What the messages behind this one wrote, in their order; each changed one flight."""
    with connect(url) as connection:
        messages = _rows(connection, proc_state, "msg_id", message_id)
        events = _rows(connection, msg_event, "msg_id", message_id)
        changes = _rows(connection, flight_change, "msg_id", message_id)
        states = {str(row[0]): row for row in _rows(connection, msg_event_state, "event_id", 0)}
        flights = {str(row[0]): row for row in _rows(connection, flight_schd, "flid", "")}
        gates: dict[str, list[Row]] = {}
        for row in _rows(connection, GATES, "flid", ""):
            gates.setdefault(str(row[0]), []).append(row)
    found = {row[0]: Written(row) for row in messages}
    message_of_change = names_of(flight_change).index("msg_id")
    said = names_of(flight_change).index("changes")
    for row in changes:
        one = found[row[message_of_change]]
        one.changes.append(row)
        flid = str(row[0])
        one.flight = flights[flid]
        if '"GTDT"' in str(row[said]):
            one.gates = gates[flid]
    message_of_event = names_of(msg_event).index("msg_id")
    for row in events:
        one = found[row[message_of_event]]
        one.events.append(row)
        one.states.append(states[str(row[0])])
    return list(found.values())


def copy_flights(source: URL, target: URL) -> None:
    """The flights as a floor needs them before it begins."""
    with connect(source) as reading, connect(target) as writing:
        for table in FLIGHT_TABLES:
            put(writing, table, take(reading, table, sql.SQL("true")))


def take(connection: Connection, table: Table, condition: sql.Composable) -> list[bytes]:
    """Rows as COPY tells them."""
    query = sql.SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT").format(
        _names(table), sql.Identifier(table.name), condition
    )
    with connection.cursor().copy(query) as copy:
        return [bytes(chunk) for chunk in copy]


def put(connection: Connection, table: Table, rows: Sequence[bytes]) -> None:
    """The same rows by COPY."""
    query = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), _names(table))
    with connection.cursor().copy(query) as copy:
        copy.write(b"".join(rows))


def count(url: URL, table: Table, condition: sql.Composable | None = None) -> int:
    """How many rows of the table there are."""
    query = sql.SQL("SELECT count(*)::text FROM {} WHERE {}").format(
        sql.Identifier(table.name), condition or sql.SQL("true")
    )
    with connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(str(row[0]))


def sizes(url: URL) -> Mapping[str, int]:
    """Row counts of everything a message leaves."""
    return {table.name: count(url, table) for table in (*FLIGHT_TABLES, *WRITTEN_ONCE)}


def inserting(table: Table, rows: int = 1) -> sql.Composed:
    """One statement for so many rows."""
    places = sql.SQL("({})").format(sql.SQL(", ").join(sql.Placeholder() for _ in table.columns))
    return sql.SQL("INSERT INTO {} ({}) VALUES {}").format(
        sql.Identifier(table.name), _names(table), sql.SQL(", ").join([places] * rows)
    )


def updating_flight() -> sql.Composed:
    """Every column of one flight; parameters are its row and its key."""
    settings = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder())
        for name in names_of(flight_schd)
    )
    return sql.SQL("UPDATE flight_schd SET {} WHERE flid = {}").format(settings, sql.Placeholder())


def _rows(connection: Connection, table: Table, key: str, after: int | str) -> list[Row]:
    """Rows with a key above this one, in its order."""
    columns = sql.SQL(", ").join(
        sql.SQL("{}::text").format(sql.Identifier(name)) for name in names_of(table)
    )
    query = sql.SQL("SELECT {} FROM {} WHERE {} > {} ORDER BY {}").format(
        columns,
        sql.Identifier(table.name),
        sql.Identifier(key),
        sql.Placeholder(),
        sql.SQL(", ").join(map(sql.Identifier, [key, *_rest_of_key(table, key)])),
    )
    return list(connection.execute(query, (after,)))


def _rest_of_key(table: Table, key: str) -> list[str]:
    return [str(column.name) for column in table.primary_key.columns if column.name != key]


def _names(table: Table) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names_of(table)))
