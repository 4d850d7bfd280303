"""What is held against the head without any exception of its own: crashes and losses (3.3)."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from msgexchange.clock import Clock
from msgexchange.ids import Fence, MailboxId
from msgexchange.pipeline.incoming import Crashed
from msgexchange.ports import Dependency, OpenAttempt, PortError

HEADS_AFTER_START = 200
"""As many as one batch may hold: one of them may have ended the process before."""
LOSSES_CHARGED = 3
"""So many losses of a connection on one head, each after a green probe, are one charge."""


class AttemptStore(Protocol):
    """The part of ``PumpStore`` that keeps the mark."""

    def open_attempt(self, fence: Fence, message_id: MailboxId, *, now: datetime) -> None: ...

    def close_attempt(self, fence: Fence) -> None: ...

    def found_attempt(self) -> OpenAttempt | None: ...


class CarefulStart:
    """The first heads after a start run one by one, each under a durable mark.

    It is over at the first idle turn: whatever was in work before has an outcome then.
    """

    def __init__(self, store: AttemptStore, clock: Clock, fence: Fence) -> None:
        self._store = store
        self._clock = clock
        self._fence = fence
        self._left = HEADS_AFTER_START
        self._looked = False
        self._found: OpenAttempt | None = None

    @property
    def on(self) -> bool:
        return self._left > 0

    def again(self, heads: int) -> None:
        """The next ``heads`` run one by one, to find out which of them it is."""
        self._left = max(self._left, heads)

    def over(self) -> None:
        self._left = 0

    def crashed(self, message_id: MailboxId) -> Crashed | None:
        """What an earlier pump left open on this head, until it is charged."""
        if not self._looked:
            self._found = self._store.found_attempt()
            self._looked = True
        found = self._found
        if found is None or found.message_id != message_id:
            return None
        crashes = found.crashes + 1
        reason = f"the process with fence {found.fence} ended while it worked on this message"
        return Crashed(f"{reason}; that happened {crashes} times", crashes)

    def charged(self) -> None:
        self._found = None

    def begin(self, message_id: MailboxId) -> None:
        """From here on the end of the process is held against this message."""
        self._store.open_attempt(self._fence, message_id, now=self._clock.now())

    def committed(self) -> None:
        self._left -= 1

    def interrupted(self) -> None:
        """The attempt ended without an outcome and without fault of the message."""
        try:
            self._store.close_attempt(self._fence)
        except PortError:
            # Left open it is written anew at the next attempt; only a crash before counts it.
            return


class Losses:
    """Counts how often a connection was lost on one head while the dependency itself was there.

    ``green_at_s`` is when a probe of a dependency last succeeded, by the monotonic clock.
    """

    def __init__(self, clock: Clock, green_at_s: Callable[[Dependency], float]) -> None:
        self._clock = clock
        self._green_at_s = green_at_s
        self._of: tuple[MailboxId, Dependency] | None = None
        self._count = 0
        self._at_s = 0.0

    def lost(self, message_id: MailboxId, dependency: Dependency) -> bool:
        """True when this loss is to be charged."""
        if self._of != (message_id, dependency):
            self._of, self._count = (message_id, dependency), 1
        elif self._green_at_s(dependency) > self._at_s:
            self._count += 1
        else:
            return False
        self._at_s = self._clock.monotonic()
        return self._count >= LOSSES_CHARGED

    def charged(self) -> None:
        self._of, self._count = None, 0
