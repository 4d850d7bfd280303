"""The shared COUTMSGS table (spec 4.5)."""

from collections.abc import Sequence
from typing import Protocol


class OutMailbox(Protocol):
    """Where requests are written; touched by nothing but SELECT and INSERT."""

    def newest_id(self) -> int:
        """MAX(id), 0 for an empty table."""
        ...

    def has(self, id_: int) -> bool:
        """True while there is a row of this id."""
        ...

    def insert(self, text: str) -> int:
        """Write one row and commit; its id. ``InsertUnknown`` if the outcome of the commit is not
        known; after any other failure there is no row.
        """
        ...

    def ids_of(self, text: str, *, after: int) -> Sequence[int]:
        """Rows above ``after`` with exactly this text, in id order."""
        ...

    def check(self) -> Sequence[str]:
        """What is wrong or doubtful about the table, each with what to do."""
        ...

    def close(self) -> None: ...
