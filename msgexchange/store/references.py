"""REF_MASTER: reference records by type and key (spec 5.2)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, String, bindparam, delete, func, select

from msgexchange.codec.encode import encode, parse_content
from msgexchange.flight.reference import Record, RecordKey, ReferenceChanges
from msgexchange.ids import MailboxId
from msgexchange.ports import ReferenceView
from msgexchange.store.bulk import Bulk
from msgexchange.store.tables import ref_master

_KEY = String(200)
_TYPE = String(32)
_MASTER = ref_master.c

_FIRST = (
    select(ref_master)
    .where(_MASTER.rtype == bindparam("wanted"))
    .order_by(_MASTER.rkey)
    .limit(bindparam("limit"))
)
_NEXT = _FIRST.where(_MASTER.rkey > bindparam("after", type_=_KEY))
_TYPES = select(_MASTER.rtype, func.count().label("records")).group_by(_MASTER.rtype)


class ReferenceRows:
    """Statements on reference records; a transaction is the caller's."""

    def __init__(self, bulk: Bulk) -> None:
        self._load = bulk.select(
            _KEY,
            lambda among: select(_MASTER.rtype, _MASTER.rkey, _MASTER.record).where(
                among(_MASTER.rkey)
            ),
        )
        self._insert = bulk.insert(ref_master)
        self._remove = bulk.change(
            {"rtype": _TYPE, "rkey": _KEY},
            lambda given: delete(ref_master).where(
                _MASTER.rtype == given("rtype"), _MASTER.rkey == given("rkey")
            ),
        )
        self._remove_types = bulk.change(
            {"rtype": _TYPE},
            lambda given: delete(ref_master).where(_MASTER.rtype == given("rtype")),
        )

    def load(
        self, connection: Connection, keys: Collection[RecordKey]
    ) -> Mapping[RecordKey, Record]:
        """What is stored of these records."""
        wanted = set(keys)
        rows = self._load(connection, {key for _, key in wanted})
        return {
            (row.rtype, row.rkey): parse_content(row.record)
            for row in rows
            if (row.rtype, row.rkey) in wanted
        }

    def write(self, connection: Connection, changes: ReferenceChanges, *, now: datetime) -> None:
        if not changes:
            return
        self._remove_types(connection, [{"rtype": name} for name in sorted(changes.replaced_types)])
        gone = sorted({*changes.removed, *changes.written})
        self._remove(connection, [{"rtype": type_, "rkey": key} for type_, key in gone])
        self._insert(
            connection,
            [
                {
                    "rtype": type_,
                    "rkey": key,
                    "record": encode(record).decode(),
                    "last_message_id": cause,
                    "updated_at": now,
                }
                for (type_, key), (record, cause) in changes.written.items()
            ],
        )


def page(
    connection: Connection, type_: str, *, after: str | None, limit: int
) -> Sequence[ReferenceView]:
    """Records of a type in key order."""
    given: dict[str, Any] = {"wanted": type_, "limit": limit}
    rows = (
        connection.execute(_NEXT, {**given, "after": after})
        if after
        else connection.execute(_FIRST, given)
    )
    return [_view(row) for row in rows]


def amounts(connection: Connection) -> Mapping[str, int]:
    """How many records each stored type has."""
    return {row.rtype: row.records for row in connection.execute(_TYPES)}


def _view(row: Any) -> ReferenceView:
    return ReferenceView(
        type=row.rtype,
        key=row.rkey,
        record=parse_content(row.record),
        last_message_id=MailboxId(row.last_message_id),
        updated_at=row.updated_at,
    )
