"""Own store: which store it is, who leads, what time it is (spec 6.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from msgexchange.ids import Fence

STANDBY_FRESH = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Which store this is, and how often it was restored from a backup (spec 4.1)."""

    store_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class Standby:
    """A process that would lead; ``able`` while it reaches mailbox and broker."""

    owner: str
    seen_at: datetime
    able: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """Who leads, by the database's own clock; ``owner`` None while nobody holds the lease."""

    fence: Fence
    owner: str | None
    until: datetime | None
    now: datetime
    standbys: Sequence[Standby] = ()

    def fresh_standbys(self) -> Sequence[Standby]:
        """Those that were heard of lately; a standby speaks up once a lease."""
        return [one for one in self.standbys if self.now - one.seen_at < STANDBY_FRESH]


class StoreActs(Protocol):
    """What people do to the store as a whole; each act is audited and ends the leader's right."""

    def new_id(self, store_id: str, *, by: str, reason: str | None, now: datetime) -> StoreInfo:
        """The store is another one from here on: it was copied."""
        ...

    def new_generation(
        self, *, above: int, by: str, reason: str | None, now: datetime
    ) -> StoreInfo:
        """One more than before, and more than ``above``: the store was restored."""
        ...


class LeaderStore(Protocol):
    """Each call bounded well below the lease, and none waits for the pump's transaction."""

    def info(self) -> StoreInfo: ...

    def take_lease(self, owner: str, lease: timedelta) -> Fence | None:
        """Own a free or expired lease and raise the fence, in one transaction.

        None while another owner's lease runs. Sessions an expired owner left behind are ended,
        so that nothing it locked holds the take-over up.
        """
        ...

    def renew_lease(self, owner: str, lease: timedelta) -> bool:
        """True when ``owner`` still holds it; touches nothing but the lease's row."""
        ...

    def give_back(self, owner: str) -> None:
        """Free the lease if ``owner`` still holds it."""
        ...

    def stand_by(self, owner: str, *, able: bool) -> None:
        """Say that this process waits to lead."""
        ...

    def leave(self, owner: str) -> None:
        """Say that it waits no longer."""
        ...

    def look(self) -> LeaseView: ...

    def shift_deadlines(self, fence: Fence, by: timedelta) -> int:
        """Move when failed messages and events run again, and when the former first ran; how
        many rows there were. ``Fenced`` if another process leads.
        """
        ...

    def database_now(self) -> datetime:
        """The database's clock, aware UTC."""
        ...
