"""How answers look: a table for people, one JSON document for programs."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from msgexchange.codec.encode import encode

Rows = Iterable[Sequence[object]]
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")


def as_json(value: object) -> None:
    """Print one JSON document, keys sorted."""
    option = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    click.echo(orjson.dumps(value, option=option, default=_plain).decode())


def table(title: str, columns: Sequence[str], rows: Rows) -> None:
    """Print a table; an empty one says so."""
    shown = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    amount = 0
    for row in rows:
        shown.add_row(*map(cell, row))
        amount += 1
    console = Console(soft_wrap=False)
    console.print(shown if amount else f"{title}: none")


def pairs(title: str, values: Mapping[str, object]) -> None:
    """Print names and values, one a line."""
    shown = Table(title=title, title_justify="left", show_header=False)
    shown.add_column(style="bold")
    shown.add_column(overflow="fold")
    for name, value in values.items():
        shown.add_row(name, cell(value))
    Console().print(shown)


def cell(value: object) -> str:
    """One value as a person reads it; absent is a dash."""
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
        case Mapping() | tuple():
            return encode(value).decode().replace("[", r"\[")
        case str():
            return value.replace("[", r"\[")
        case _:
            return str(value).replace("[", r"\[")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
