"""Terminal messages leave the inbox for its archive (spec 5.4)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from msgexchange.clock import Clock
from msgexchange.ids import Fence, MailboxId
from msgexchange.pipeline.daily import Done, Slices
from msgexchange.ports import ArchiveStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRules:
    """``archive.after``; ``marks`` False in a shadow run, where nothing is ever marked."""

    after: timedelta = timedelta(days=7)
    marks: bool = True
    messages_max: int = 500
    """Looked at in one slice."""


class Archive:
    """A ``Duty``: their identities go with them, so that duplicates are still recognised."""

    def __init__(
        self, *, store: ArchiveStore, clock: Clock, fence: Fence, rules: ArchiveRules
    ) -> None:
        self._store = store
        self._clock = clock
        self._fence = fence
        self._rules = rules

    def slices(self, *, now: datetime) -> Slices:
        """By id from the oldest; what must stay is passed over."""
        moved, after = 0, MailboxId(0)
        while True:
            slice_ = self._store.archive(
                self._fence,
                after=after,
                ended_before=now - self._rules.after,
                marks=self._rules.marks,
                limit=self._rules.messages_max,
                now=self._clock.now(),
            )
            moved += slice_.done
            if slice_.reached is None:
                return Done(f"{moved} messages archived")
            after = MailboxId(slice_.reached)
            yield
