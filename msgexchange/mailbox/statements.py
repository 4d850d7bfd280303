"""The few statements ever sent to the mailbox, built once and static (spec 3.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    DateTime,
    Insert,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    Update,
    bindparam,
    case,
    func,
    insert,
    literal,
    literal_column,
    null,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.mysql import DATETIME, LONGTEXT
from sqlalchemy.sql.selectable import CompoundSelect
from sqlalchemy.sql.type_api import TypeEngine

from msgexchange.mailbox.columns import ColumnMap

MILLISECONDS = DateTime().with_variant(DATETIME(fsp=3), "mysql", "mariadb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """What the two databases say differently.

    ``utc_now`` is database time fixed at the start of the statement; ``local_now`` the owner's kind
    of time stamp; ``octets`` a function that measures text in bytes; ``begin`` opens a transaction
    on an autocommit connection.
    """

    utc_now: ColumnElement[Any]
    local_now: ColumnElement[Any]
    begin: str
    octets: Callable[[Column[Any]], ColumnElement[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """Parameters: ``watermark``, ``id_max``, ``limit``; ``lo``, ``hi``; ``ids``, ``bytes_max``;
    ``text``; ``after``.
    """

    list_after: CompoundSelect[Any]
    ids_between: Select[Any]
    texts: Select[Any]
    insert: Insert
    mark: Update
    overwrite: Update
    marks: Select[Any]
    marks_after: Select[Any]
    newest: Select[Any]
    oldest: Select[Any]


def table_of(columns: ColumnMap) -> Table:
    """The inbound table under its owner's names; quoted where a name needs it."""
    extra = [
        Column(name, Integer if isinstance(value, int) else String(255))
        for name, value in columns.extra.items()
    ]
    key: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
    return Table(
        columns.name,
        MetaData(),
        Column(columns.id, key, primary_key=True, autoincrement=True),
        Column(columns.text, Text().with_variant(LONGTEXT(charset="utf8mb4"), "mysql", "mariadb")),
        Column(columns.received, MILLISECONDS),
        Column(columns.flag, String(max(1, len(columns.processed))), server_default="N"),
        Column(columns.processed_time, MILLISECONDS),
        *extra,
        schema=columns.schema,
        # Without this an emptied table would hand the same id out twice (spec 3.2, ids that go
        # back); RETURNING would hide the id from drivers that learn it from the insert itself.
        sqlite_autoincrement=True,
        implicit_returning=False,
    )


def statements_of(columns: ColumnMap, table: Table, sql: Sql) -> Statements:
    """Every statement for this table."""
    id_, body, flag = (table.c[name] for name in (columns.id, columns.text, columns.flag))
    octets = sql.octets(body)
    mark = update(table).values(
        {columns.flag: columns.processed, columns.processed_time: sql.local_now}
    )
    return Statements(
        list_after=_list_after(id_, octets, sql),
        ids_between=select(id_)
        .where(id_ >= bindparam("lo"), id_ <= bindparam("hi"))
        .order_by(id_)
        .limit(bindparam("limit")),
        texts=select(
            id_, octets, case((octets <= bindparam("bytes_max", type_=BigInteger), body))
        ).where(_among(id_)),
        insert=insert(table).values(
            {
                columns.text: bindparam("text", type_=Text),
                columns.received: sql.local_now,
                **{name: literal(value) for name, value in columns.extra.items()},
            }
        ),
        mark=mark.where(_among(id_), or_(flag.is_(None), flag.in_(columns.unprocessed))),
        overwrite=mark.where(_among(id_), or_(flag.is_(None), flag != columns.processed)),
        marks=select(id_, flag == columns.processed).where(_among(id_)),
        marks_after=select(id_, func.coalesce(flag == columns.processed, literal_column("0")))
        .where(id_ > bindparam("after"))
        .order_by(id_)
        .limit(bindparam("limit")),
        newest=select(func.coalesce(func.max(id_), 0)),
        oldest=select(func.coalesce(func.min(id_), 0)),
    )


def _among(id_: Column[Any]) -> ColumnElement[bool]:
    return id_.in_(bindparam("ids", expanding=True))


def _list_after(id_: Column[Any], octets: ColumnElement[int], sql: Sql) -> CompoundSelect[Any]:
    """One row with the time the statement began and the greatest id, then the rows.

    Time comes as a row of its own because it is needed where there are no rows too; a join with it
    would leave the walk along the primary key to the optimizer's mood.
    """
    listed = (
        select(id_.label("id"), octets.label("octets"))
        .where(id_ > bindparam("watermark"), id_ <= bindparam("id_max"))
        .order_by(id_)
        .limit(bindparam("limit"))
        .subquery("listed")
    )
    return union_all(
        select(
            null().label("id"),
            null().label("octets"),
            sql.utc_now.label("started_at"),
            select(func.coalesce(func.max(id_), 0)).scalar_subquery().label("newest"),
        ),
        select(listed.c.id, listed.c.octets, null(), null()),
    )
