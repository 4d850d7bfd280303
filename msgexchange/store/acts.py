"""What people do to the store as a whole: a new id for a copy, a new generation for a restored one
(spec 4.1). Each raises the fence: whoever leads with the old identity can commit no more.
"""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import (
    Connection,
    Integer,
    String,
    bindparam,
    insert,
    literal_column,
    select,
    update,
)

from msgexchange.ports import StoreInfo
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    LEADER_ROW,
    STORE_ROW,
    operation_audit,
    pipeline_lock,
    store_info,
)

_INFO = select(store_info.c.store_id, store_info.c.generation).where(store_info.c.name == STORE_ROW)
_LOCK_INFO = _INFO.with_for_update()
_IDENTIFY = (
    update(store_info)
    .where(store_info.c.name == STORE_ROW)
    .values(
        store_id=bindparam("new_store_id", type_=String(36)),
        generation=bindparam("new_generation", type_=Integer()),
    )
)
_RAISE_FENCE = (
    update(pipeline_lock)
    .where(pipeline_lock.c.name == LEADER_ROW)
    .values(fence=pipeline_lock.c.fence + literal_column("1"))
)
_AUDIT = insert(operation_audit)


class StoreActs:
    """The ``StoreActs`` port of the own database."""

    def __init__(self, sessions: Sessions, nonce: Callable[[], int]) -> None:
        self._sessions = sessions
        self._nonce = nonce

    def new_id(self, store_id: str, *, by: str, reason: str | None, now: datetime) -> StoreInfo:
        with self._sessions.write() as connection:
            before = _lock(connection)
            after = StoreInfo(store_id, before.generation)
            self._identify(connection, "store-new-id", before, after, (by, reason, now))
            return after

    def new_generation(
        self, *, above: int, by: str, reason: str | None, now: datetime
    ) -> StoreInfo:
        with self._sessions.write() as connection:
            before = _lock(connection)
            after = StoreInfo(before.store_id, max(before.generation, above) + 1)
            self._identify(connection, "store-new-generation", before, after, (by, reason, now))
            return after

    def _identify(
        self,
        connection: Connection,
        act: str,
        before: StoreInfo,
        after: StoreInfo,
        who: tuple[str, str | None, datetime],
    ) -> None:
        by, reason, now = who
        connection.execute(
            _IDENTIFY, {"new_store_id": after.store_id, "new_generation": after.generation}
        )
        connection.execute(
            _AUDIT,
            {
                "audit_id": self._nonce(),
                "at": now,
                "actor": by,
                "act": act,
                "subject": f"store {before.store_id}, generation {before.generation}",
                "reason": reason,
                "outcome": f"store {after.store_id}, generation {after.generation}",
            },
        )


def raise_fence(connection: Connection) -> None:
    """Whoever leads can commit no more."""
    connection.execute(_RAISE_FENCE)


def _lock(connection: Connection) -> StoreInfo:
    raise_fence(connection)
    row = connection.execute(_LOCK_INFO).one()
    return StoreInfo(row.store_id, row.generation)
