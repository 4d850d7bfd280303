"""Steps that do what a test tells them, and telemetry that remembers."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from msgexchange.pipeline.step import Step


@dataclass
class Told:
    """Telemetry that keeps what it is told."""

    alerts: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """What the alerts said."""
    lines: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    """Log lines, name and fields."""

    def lines_of(self, event: str) -> list[dict[str, object]]:
        return [fields for name, fields in self.lines if name == event]

    def alert(self, name: str, text: str) -> None:
        self.texts.append(text)
        self.alerts.append(name)

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + amount

    def observe(self, name: str, seconds: float) -> None:
        return

    def log(self, event: str, **fields: object) -> None:
        self.events.append(event)
        self.lines.append((event, fields))


class Scripted:
    """A step whose turns are the calls of a script; the last one repeats."""

    def __init__(self, *script: Callable[[], float]) -> None:
        self._script = list(script)
        self.turns = 0
        self.threads: set[int] = set()
        self._turned = threading.Condition()

    def step(self) -> float:
        self.threads.add(threading.get_ident())
        call = self._script[min(self.turns, len(self._script) - 1)]
        with self._turned:
            self.turns += 1
            self._turned.notify_all()
        return call()

    def wait_for(self, turns: int, timeout_s: float = 5) -> None:
        with self._turned:
            assert self._turned.wait_for(lambda: self.turns >= turns, timeout_s), self.turns


class OpenedScript:
    """What an actor opens: one scripted step, counted when closed."""

    def __init__(self, step: Step, on_close: Callable[[], None] = lambda: None) -> None:
        self.step = step
        self._on_close = on_close

    def close(self) -> None:
        self._on_close()


def pause(seconds: float) -> Callable[[], float]:
    return lambda: seconds


def fails(failure: Exception) -> Callable[[], float]:
    def call() -> float:
        raise failure

    return call
