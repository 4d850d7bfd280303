"""Which store this is, who leads, what time it is (spec 6.1)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Select, bindparam, func, literal_column, select, update

from msgexchange.ids import Fence
from msgexchange.ports import StoreInfo
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import LEADER_ROW, STORE_ROW, leader_lease, pipeline_lock, store_info

_INFO = select(store_info.c.store_id, store_info.c.generation).where(store_info.c.name == STORE_ROW)
_RAISE_FENCE = (
    update(pipeline_lock)
    .where(pipeline_lock.c.name == LEADER_ROW)
    .values(fence=pipeline_lock.c.fence + literal_column("1"))
)
_FENCE = select(pipeline_lock.c.fence).where(pipeline_lock.c.name == LEADER_ROW)
_OWN = (
    update(leader_lease)
    .where(leader_lease.c.name == LEADER_ROW)
    .values(owner=bindparam("new_owner"))
)

_NOW: Mapping[str, Select[Any]] = {
    "postgresql": select(func.clock_timestamp()),
    "sqlite": select(func.strftime(literal_column("'%Y-%m-%dT%H:%M:%f'"), literal_column("'now'"))),
    "oracle": select(func.sys_extract_utc(literal_column("SYSTIMESTAMP"))),
}
"""The clock of the database itself, not the start of a transaction."""


class Leader:
    """The ``LeaderStore`` of the own database."""

    def __init__(self, sessions: Sessions, *, dialect: str) -> None:
        self._sessions = sessions
        self._now = _NOW[dialect]

    def info(self) -> StoreInfo:
        with self._sessions.look() as connection:
            row = connection.execute(_INFO).one()
            return StoreInfo(row.store_id, row.generation)

    def take_leadership(self, owner: str, *, now: datetime) -> Fence:  # noqa: ARG002
        """Waits, within the lock timeout, for transactions of the leader before."""
        with self._sessions.write() as connection:
            connection.execute(_RAISE_FENCE)
            connection.execute(_OWN, {"new_owner": owner})
            return Fence(connection.execute(_FENCE).scalar_one())

    def database_now(self) -> datetime:
        with self._sessions.look() as connection:
            said = connection.execute(self._now).scalar_one()
        moment = datetime.fromisoformat(said) if isinstance(said, str) else said
        assert isinstance(moment, datetime)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
