"""One thread that tells actors their next turn is due."""

import heapq
import itertools
import threading
from collections.abc import Callable

from msgexchange.clock import Clock


class Alarm:
    """Calls back after a delay; bounded by one pending turn per actor."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._ring, name="alarm", daemon=True)
        self._thread.start()

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call once, about ``seconds`` from now, on the alarm's thread; it must not block."""
        with self._changed:
            due = (self._clock.monotonic() + seconds, next(self._order), call)
            heapq.heappush(self._due, due)
            if self._due[0] is due:
                self._changed.notify()

    def stop(self) -> None:
        """End the thread; what is still due is dropped."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(timeout=5)

    def _ring(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                left = self._due[0][0] - self._clock.monotonic() if self._due else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                _, _, call = heapq.heappop(self._due)
            call()
