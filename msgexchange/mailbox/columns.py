"""How the mailbox's owner named the table and its columns (spec 3.1)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """Names of the inbound table; the defaults are CMINMSGS.

    ``table`` may be ``schema.table``. ``extra`` are the columns that an insert must also fill, each
    with its fixed value. ``processed`` is what the mark is set to, ``unprocessed`` what it reads
    (besides NULL) where nobody has set it. A name that is not a plain
    identifier, or a column named twice, is a ``ValueError``.
    """

    table: str = "CMINMSGS"
    id: str = "CMINMSGS_ID"
    text: str = "MSG_TEXT"
    received: str = "RECV_TIME"
    flag: str = "PROC_FLAG"
    processed_time: str = "PROC_TIME"
    extra: Mapping[str, str | int] = field(default_factory=dict)
    processed: str = "Y"
    unprocessed: tuple[str, ...] = ("N", " ", "")
    id_step: int = 1
    """The server's auto_increment_increment as the site declared it."""

    def __post_init__(self) -> None:
        check_names(self.table, list(self.columns()))
        if not self.processed:
            raise ValueError("mailbox: the processed value is empty; it must mark a row")
        if self.processed in self.unprocessed:
            raise ValueError(f"mailbox: {self.processed!r} cannot mean processed and unprocessed")

    def columns(self) -> Iterator[str]:
        """Every column touched."""
        yield from (self.id, self.text, self.received, self.flag, self.processed_time)
        yield from self.extra

    @property
    def schema(self) -> str | None:
        """The part before the dot, None without one."""
        return self.table.rpartition(".")[0] or None

    @property
    def name(self) -> str:
        """The table without its schema."""
        return self.table.rpartition(".")[2]


def check_names(table: str, columns: Sequence[str]) -> None:
    """``ValueError`` unless all are plain identifiers and no column is named twice."""
    for name in (*table.split("."), *columns):
        if _NAME.fullmatch(name) is None:
            raise ValueError(
                f"mailbox: {name!r} is not a plain name; use letters, digits, _ and $, "
                "64 at most, not beginning with a digit"
            )
    if table.count(".") > 1:
        raise ValueError(f"mailbox: {table!r} has too many parts; write schema.table")
    folded = [name.casefold() for name in columns]
    for name in folded:
        if folded.count(name) > 1:
            raise ValueError(f"mailbox: the column {name} is named for two purposes")
