"""Signs of life of one actor, read by the watchdog and by health from other threads."""

import threading
from dataclasses import dataclass

from msgexchange.clock import Clock


@dataclass(frozen=True, slots=True)
class Sign:
    """What an actor was last seen doing; ``busy_s`` None while it waits.

    ``overdue_s`` is how long it has been in one step, or how long its next one has been due.
    """

    alive: bool
    busy_s: float | None
    overdue_s: float
    turns: int
    starts: int


class Pulse:
    """Written by the actor's thread at both ends of a turn, kept across its restarts.

    Who is to beat and does not, be it never started, gone without a word or never woken again,
    is as overdue as who is stuck in a step.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._busy_since_s: float | None = None
        self._due_at_s: float | None = clock.monotonic()
        self._turns = 0
        self._starts = 0
        self._thread: threading.Thread | None = None

    def started(self) -> None:
        with self._lock:
            self._thread = threading.current_thread()
            self._starts += 1
            self._rest(0.0)

    def turn_begins(self) -> None:
        with self._lock:
            self._busy_since_s = self._clock.monotonic()

    def turn_ends(self, pause_s: float) -> None:
        """The next turn is due after the pause."""
        with self._lock:
            self._turns += 1
            self._rest(pause_s)

    def restarts_in(self, pause_s: float) -> None:
        """It failed, and is to begin anew after the pause."""
        with self._lock:
            self._rest(pause_s)

    def stopped(self) -> None:
        """Nothing is expected of it any more."""
        with self._lock:
            self._busy_since_s = self._due_at_s = None

    def thread_ended(self) -> bool:
        """True once the thread of the last start is gone: only then may a fresh one start."""
        with self._lock:
            return self._thread is None or not self._thread.is_alive()

    def sign(self) -> Sign:
        with self._lock:
            now_s = self._clock.monotonic()
            busy = self._busy_since_s
            since_s = self._due_at_s if busy is None else busy
            return Sign(
                alive=self._thread is not None and self._thread.is_alive(),
                busy_s=None if busy is None else now_s - busy,
                overdue_s=0.0 if since_s is None else max(now_s - since_s, 0.0),
                turns=self._turns,
                starts=self._starts,
            )

    def _rest(self, pause_s: float) -> None:
        self._busy_since_s = None
        self._due_at_s = self._clock.monotonic() + pause_s
