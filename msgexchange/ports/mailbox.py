"""The shared CMINMSGS table (spec 3.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.watermark import MailboxRow
from msgexchange.ports.failures import PortError


@dataclass(frozen=True, slots=True)
class Listing:
    """Visible rows above W in id order; ``started_at`` is database time as the statement began.

    ``newest`` is MAX(id) of the table in the same statement, 0 for an empty one.
    """

    rows: Sequence[MailboxRow]
    started_at: datetime
    newest: int


class TextMissing(StrEnum):
    """Why a raw text cannot be had."""

    ROW_GONE = "row gone"
    NO_TEXT = "text is NULL"
    TOO_LARGE = "text over the size limit"
    NOT_TEXT = "bytes that are no text; store it as text in utf8mb4"


Text: TypeAlias = str | TextMissing


class Mailbox(Protocol):
    """The shared CMINMSGS table, touched only as spec 3.1 allows. Each call is one statement."""

    def list_after(self, watermark: int, *, limit: int, id_max: int | None) -> Listing:
        """Rows with watermark < id (<= ``id_max``), in id order, at most ``limit``; ids and text
        lengths only, whatever their mark says.
        """
        ...

    def ids_between(self, lo: int, hi: int, *, limit: int) -> Sequence[int]:
        """The smallest visible ids from ``lo`` to ``hi``, in order; ids only."""
        ...

    def next_id(self) -> int | None:
        """The id the server will hand out next; None where it does not tell."""
        ...

    def texts(self, ids: Sequence[MailboxId], *, bytes_max: int) -> Mapping[MailboxId, Text]:
        """Raw text of each id; one over ``bytes_max`` is never loaded."""
        ...

    def insert(self, text: str) -> MailboxId:
        """Write one row and commit. ``InsertUnknown`` if the outcome of the commit is not known."""
        ...

    def mark(
        self, ids: Sequence[MailboxId], *, overwrite: bool = False
    ) -> Mapping[MailboxId, "MarkOutcome"]:
        """Set the processed mark on rows that nobody has marked; says what each id reads now.

        ``overwrite`` sets it whatever value a third party has put there.
        """
        ...

    def marks_after(self, after: int, *, limit: int) -> Mapping[MailboxId, bool]:
        """Rows with an id above ``after``, at most ``limit`` in id order: which are marked."""
        ...

    def newest_id(self) -> int:
        """MAX(id), 0 for an empty table."""
        ...

    def oldest_id(self) -> int:
        """MIN(id), 0 for an empty table."""
        ...

    def check(self) -> Sequence[str]:
        """What is wrong or doubtful about the table and the server, each with what to do."""
        ...

    def close(self) -> None: ...


class Probed(StrEnum):
    """What a look for locks on a range of ids found."""

    EMPTY = "empty"
    HELD = "held"


class ProbeUnfit(PortError):
    """Here a probe proves nothing, or is not allowed; the text says why."""


class GapProbe(Protocol):
    """Asks the mailbox's server whether a living writer holds ids that are not visible yet."""

    def probe(self, lo: int, hi: int) -> Probed:
        """Look once, waiting for nobody and leaving no lock behind; may raise ``ProbeUnfit``."""
        ...


class InsertUnknown(PortError):
    """The connection was lost at COMMIT: the row may be there or not."""


class MarkOutcome(StrEnum):
    """What became of one mark."""

    MARKED = "marked"
    ROW_GONE = "row-gone"
    OTHER_VALUE = "other-value"
