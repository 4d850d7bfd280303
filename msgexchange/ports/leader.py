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


class LeaderStore(Protocol):
    def info(self) -> StoreInfo: ...

    def take_leadership(self, owner: str, *, now: datetime) -> Fence:
        """Raise the fence by one and own it."""
        ...

    def database_now(self) -> datetime:
        """The database's clock, aware UTC."""
        ...
