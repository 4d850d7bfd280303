"""The processed marks of what the pump commits: right after, in as few statements as can be (3.6).

The intent is in the commit, so that whatever is lost here is made good by the sweep.
"""

from collections.abc import Mapping, Sequence

from msgexchange.clock import Clock
from msgexchange.ids import Fence, MailboxId
from msgexchange.ports import (
    Mailbox,
    MarkOutcome,
    MessageFault,
    PumpStore,
    RetryNow,
    Telemetry,
    Unavailable,
)

GATHERED_MAX = 50
GATHERED_FOR_S = 0.05
"""While commit follows commit, so many marks or marks so old are written in one statement."""


class Marking:
    """Gathers marks while the pump is busy, and writes them when it rests."""

    def __init__(
        self,
        *,
        store: PumpStore,
        mailbox: Mailbox,
        clock: Clock,
        fence: Fence,
        telemetry: Telemetry,
        marks: bool,
    ) -> None:
        """``marks`` False: nothing is written to the mailbox."""
        self._store = store
        self._mailbox = mailbox
        self._clock = clock
        self._fence = fence
        self._telemetry = telemetry
        self._marks = marks
        self._waiting: list[MailboxId] = []
        self._waiting_since_s = 0.0
        self._made: dict[MailboxId, MarkOutcome] = {}

    @property
    def intended(self) -> bool:
        return self._marks

    def made(self) -> Mapping[MailboxId, MarkOutcome]:
        """Marks that the own store does not know of yet; the next commit may tell it."""
        return dict(self._made)

    def told(self, made: Mapping[MailboxId, MarkOutcome]) -> None:
        """The own store knows of these."""
        for id_ in made:
            self._made.pop(id_, None)

    def committed(self, ids: Sequence[MailboxId]) -> None:
        """These are terminal for good."""
        if not ids or not self._marks:
            return
        if not self._waiting:
            self._waiting_since_s = self._clock.monotonic()
        self._waiting += ids
        waited_s = self._clock.monotonic() - self._waiting_since_s
        if len(self._waiting) >= GATHERED_MAX or waited_s >= GATHERED_FOR_S:
            self.write()

    def rest(self) -> None:
        """Nothing follows at once: write what waits, in a commit of its own if need be."""
        self.write()
        if self._made:
            self._store.record_marks(self._made, now=self._clock.now())
            self._made = {}

    def write(self) -> None:
        """Best effort; ``Fenced`` if another process leads."""
        ids, self._waiting = self._waiting, []
        if not ids:
            return
        try:
            self._store.check_fence(self._fence)
            self._made.update(self._mailbox.mark(ids))
        except (Unavailable, RetryNow, MessageFault) as failure:
            self._telemetry.log("mark.failed", first=ids[0], count=len(ids), reason=str(failure))
