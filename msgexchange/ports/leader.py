"""Own store: which store it is, who leads, what time it is (spec 6.1)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgexchange.ids import Fence


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Which store this is, and how often it was restored from a backup (spec 4.1)."""

    store_id: str
    generation: int


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
    def info(self) -> StoreInfo: ...

    def take_leadership(self, owner: str, *, now: datetime) -> Fence:
        """Raise the fence by one and own it."""
        ...

    def database_now(self) -> datetime:
        """The database's clock, aware UTC."""
        ...
