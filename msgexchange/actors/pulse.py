"""Signs of life of one actor, read by the watchdog and by health from other threads."""

import threading
from dataclasses import dataclass

from msgexchange.clock import Clock


@dataclass(frozen=True, slots=True)
class Sign:
    """What an actor was last seen doing; ``busy_s`` None while it waits."""

    alive: bool
    busy_s: float | None
    turns: int
    starts: int


class Pulse:
    """Written by the actor's thread at both ends of a turn, kept across its restarts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._busy_since_s: float | None = None
        self._turns = 0
        self._starts = 0
        self._thread: threading.Thread | None = None

    def started(self) -> None:
        with self._lock:
            self._thread = threading.current_thread()
            self._starts += 1
            self._busy_since_s = None

    def turn_begins(self) -> None:
        with self._lock:
            self._busy_since_s = self._clock.monotonic()

    def turn_ends(self) -> None:
        with self._lock:
            self._busy_since_s = None
            self._turns += 1

    def thread_ended(self) -> bool:
        """True once the thread of the last start is gone: only then may a fresh one start."""
        with self._lock:
            return self._thread is None or not self._thread.is_alive()

    def sign(self) -> Sign:
        with self._lock:
            busy = self._busy_since_s
            return Sign(
                alive=self._thread is not None and self._thread.is_alive(),
                busy_s=None if busy is None else self._clock.monotonic() - busy,
                turns=self._turns,
                starts=self._starts,
            )
