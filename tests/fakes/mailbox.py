"""A mailbox in memory: rows as committed, marks, and rows that cannot be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from factories import T0
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.watermark import MailboxRow
from msgexchange.ports import Listing, MarkOutcome, MessageFault, Text, TextMissing


@dataclass
class MemoryMailbox:
    """Port ``Mailbox``; ``unreadable`` are ids whose text the driver chokes on."""

    rows: dict[int, str] = field(default_factory=dict)
    marked: set[int] = field(default_factory=set)
    unreadable: set[int] = field(default_factory=set)
    reads: int = 0
    mark_statements: int = 0
    now: datetime = T0

    def list_after(self, watermark: int, *, limit: int, id_max: int | None) -> Listing:
        ids = sorted(id_ for id_ in self.rows if id_ > watermark)
        within = [id_ for id_ in ids if id_max is None or id_ <= id_max][:limit]
        listed = [MailboxRow(MailboxId(id_), len(self.rows[id_].encode())) for id_ in within]
        return Listing(listed, self.now, self.newest_id())

    def ids_between(self, lo: int, hi: int, *, limit: int) -> Sequence[int]:
        return sorted(id_ for id_ in self.rows if lo <= id_ <= hi)[:limit]

    def next_id(self) -> int:
        return self.newest_id() + 1

    def texts(self, ids: Sequence[MailboxId], *, bytes_max: int) -> Mapping[MailboxId, Text]:
        self.reads += 1
        if self.unreadable & set(ids):
            raise MessageFault("mailbox: cannot decode")
        return {id_: self.rows.get(id_, TextMissing.ROW_GONE) for id_ in ids}

    def insert(self, text: str) -> MailboxId:
        id_ = MailboxId(max(self.rows, default=0) + 1)
        self.rows[id_] = text
        return id_

    def mark(
        self, ids: Sequence[MailboxId], *, overwrite: bool = False
    ) -> Mapping[MailboxId, MarkOutcome]:
        self.mark_statements += 1
        self.marked.update(ids)
        return dict.fromkeys(ids, MarkOutcome.MARKED)

    def marks_after(self, after: int, *, limit: int) -> Mapping[MailboxId, bool]:
        ids = sorted(id_ for id_ in self.rows if id_ > after)[:limit]
        return {MailboxId(id_): id_ in self.marked for id_ in ids}

    def newest_id(self) -> int:
        return max(self.rows, default=0)

    def oldest_id(self) -> int:
        return min(self.rows, default=0)

    def check(self) -> Sequence[str]:
        return ()

    def close(self) -> None:
        return
