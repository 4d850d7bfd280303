"""COUTMSGS in memory, whose next insert can end in any way an insert ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgexchange.ports import InsertUnknown, MessageFault, Unavailable
from msgexchange.ports.failures import Dependency

LOST = Unavailable(Dependency.MAILBOX, "connection lost")


@dataclass
class MemoryOutMailbox:
    """Port ``OutMailbox``; ``ends`` are how the next inserts end, one each, then all is well:
    ``lost`` before the commit, ``unknown-written``, ``unknown-rolled-back``, ``refused``.
    """

    rows: dict[int, str] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)
    before_insert: Callable[[], None] = field(default=lambda: None)
    last_id: int = 0
    inserts: int = 0

    def newest_id(self) -> int:
        return max(self.rows, default=0)

    def has(self, id_: int) -> bool:
        return id_ in self.rows

    def insert(self, text: str) -> int:
        self.before_insert()
        self.inserts += 1
        end = self.ends.pop(0) if self.ends else "written"
        if end == "lost":
            raise LOST
        if end == "refused":
            raise MessageFault("no column SITE")
        self.last_id += 1
        if end != "unknown-rolled-back":
            self.rows[self.last_id] = text
        if end.startswith("unknown"):
            raise InsertUnknown("lost at commit")
        return self.last_id

    def ids_of(self, text: str, *, after: int) -> Sequence[int]:
        return [id_ for id_, body in sorted(self.rows.items()) if id_ > after and body == text]

    def check(self) -> Sequence[str]:
        return ()

    def close(self) -> None:
        return
