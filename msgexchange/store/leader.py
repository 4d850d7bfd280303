"""Which store this is, who leads, what time it is (spec 6.1).

The lease is judged by the database's clock, read inside the transaction that changes it: one
that waits for a row lock judges by the earlier moment, never by a later one.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    Connection,
    Select,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    update,
)

from msgexchange.ids import Fence
from msgexchange.ports import LeaseView, Standby, StoreInfo
from msgexchange.store import deadlines
from msgexchange.store.engine import session_name
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    LEADER_ROW,
    STORE_ROW,
    leader_lease,
    pipeline_lock,
    standby,
    store_info,
)
from msgexchange.store.transaction import leader_transaction

STANDBY_KEPT = timedelta(hours=1)
"""How long the row of a standby that went away without a word is kept."""

_INFO = select(store_info.c.store_id, store_info.c.generation).where(store_info.c.name == STORE_ROW)
_RAISE_FENCE = (
    update(pipeline_lock)
    .where(pipeline_lock.c.name == LEADER_ROW)
    .values(fence=pipeline_lock.c.fence + literal_column("1"))
)
_FENCE = select(pipeline_lock.c.fence).where(pipeline_lock.c.name == LEADER_ROW)
_LEASE = select(leader_lease.c.owner, leader_lease.c.until_at).where(
    leader_lease.c.name == LEADER_ROW
)
_TAKE = (
    update(leader_lease)
    .where(
        leader_lease.c.name == LEADER_ROW,
        or_(leader_lease.c.owner.is_(None), leader_lease.c.until_at <= bindparam("taken_at")),
    )
    .values(owner=bindparam("new_owner"), until_at=bindparam("new_until"))
)
_RENEW = (
    update(leader_lease)
    .where(leader_lease.c.name == LEADER_ROW, leader_lease.c.owner == bindparam("holder"))
    .values(until_at=bindparam("new_until"))
)
_GIVE_BACK = (
    update(leader_lease)
    .where(leader_lease.c.name == LEADER_ROW, leader_lease.c.owner == bindparam("holder"))
    .values(owner=None, until_at=None)
)
_END_SESSIONS = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND usename = current_user AND application_name = :session AND pid <> pg_backend_pid()"
)
_STANDBYS = select(standby).order_by(standby.c.owner)
_LEAVE = delete(standby).where(
    or_(standby.c.owner == bindparam("waiter"), standby.c.seen_at < bindparam("forgotten_at"))
)
_STAND_BY = insert(standby)

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
        self._ends_sessions = dialect == "postgresql"

    def info(self) -> StoreInfo:
        with self._sessions.look() as connection:
            row = connection.execute(_INFO).one()
            return StoreInfo(row.store_id, row.generation)

    def take_lease(self, owner: str, lease: timedelta) -> Fence | None:
        with self._sessions.write() as connection:
            now = self._moment(connection)
            before = connection.execute(_LEASE).one().owner
            given = {"taken_at": now, "new_owner": owner, "new_until": now + lease}
            if connection.execute(_TAKE, given).rowcount != 1:
                return None
            if self._ends_sessions and before not in (None, owner):
                connection.execute(_END_SESSIONS, {"session": session_name(before)})
            connection.execute(_RAISE_FENCE)
            return Fence(connection.execute(_FENCE).scalar_one())

    def renew_lease(self, owner: str, lease: timedelta) -> bool:
        with self._sessions.write() as connection:
            until = self._moment(connection) + lease
            given = {"holder": owner, "new_until": until}
            return connection.execute(_RENEW, given).rowcount == 1

    def give_back(self, owner: str) -> None:
        with self._sessions.write() as connection:
            connection.execute(_GIVE_BACK, {"holder": owner})

    def stand_by(self, owner: str, *, able: bool) -> None:
        with self._sessions.write() as connection:
            now = self._moment(connection)
            connection.execute(_LEAVE, {"waiter": owner, "forgotten_at": now - STANDBY_KEPT})
            connection.execute(_STAND_BY, {"owner": owner, "seen_at": now, "able": int(able)})

    def leave(self, owner: str) -> None:
        with self._sessions.write() as connection:
            forgotten = self._moment(connection) - STANDBY_KEPT
            connection.execute(_LEAVE, {"waiter": owner, "forgotten_at": forgotten})

    def look(self) -> LeaseView:
        with self._sessions.read() as connection:
            now = self._moment(connection)
            lease = connection.execute(_LEASE).one()
            fence = connection.execute(_FENCE).scalar_one()
            standbys = [
                Standby(row.owner, row.seen_at, bool(row.able))
                for row in connection.execute(_STANDBYS)
            ]
        held = lease.until_at is not None and lease.until_at > now
        return LeaseView(
            fence=Fence(fence),
            owner=lease.owner if held else None,
            until=lease.until_at,
            now=now,
            standbys=standbys,
        )

    def shift_deadlines(self, fence: Fence, by: timedelta) -> int:
        with leader_transaction(self._sessions, fence) as connection:
            return deadlines.shift(connection, by)

    def database_now(self) -> datetime:
        with self._sessions.look() as connection:
            return self._moment(connection)

    def _moment(self, connection: Connection) -> datetime:
        said = connection.execute(self._now).scalar_one()
        moment = datetime.fromisoformat(said) if isinstance(said, str) else said
        assert isinstance(moment, datetime)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
