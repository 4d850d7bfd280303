"""Faults at the n-th call of any port: it raises, hangs, or ends the actor that made it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Fault:
    """Strikes from the ``at``-th call on, ``times`` times; ``act`` raises or blocks.

    It is told the name of the call.
    """

    act: Callable[[str], None]
    at: int = 1
    times: int = 1


@dataclass
class Faults:
    """What is wrong with one port; quiet until ``arm`` is called."""

    struck: threading.Event = field(default_factory=threading.Event)
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._seen = 0

    def arm(self, fault: Fault) -> None:
        with self._lock:
            self._fault, self._seen = fault, 0
            self.struck.clear()
            self.calls.clear()

    def meet(self, call: str) -> None:
        """Called at the beginning of every call of the port."""
        with self._lock:
            fault = self._fault
            self._seen += 1
            if fault is None or self._seen < fault.at or fault.times < 1:
                return
            fault.times -= 1
            self.calls.append(call)
        self.struck.set()
        fault.act(call)


class FaultyPort:
    """Stands before a port, and before the transactions it lends."""

    def __init__(self, port: Any, faults: Faults) -> None:
        self._port = port
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found) or name == "close":
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self._faults.meet(name)
            answer = found(*arguments, **named)
            if isinstance(answer, AbstractContextManager):
                return _lent(answer, self._faults)
            return answer

        return call


@contextmanager
def _lent(transaction: AbstractContextManager[Any], faults: Faults) -> Iterator[FaultyPort]:
    with transaction as inner:
        yield FaultyPort(inner, faults)
        faults.meet("commit")


def raises(failure: Callable[[], Exception]) -> Callable[[str], None]:
    def act(_call: str) -> None:
        raise failure()

    return act


def hangs(release: threading.Event, seconds_max: float = 30) -> Callable[[str], None]:
    """Blocks until ``release``; bounded, so that a failed test ends."""

    def act(_call: str) -> None:
        release.wait(seconds_max)

    return act
