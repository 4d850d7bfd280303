"""The one source of chance, time and faults of a simulated world."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - seeded, the same every time
from typing import Any, TypeVar, cast

from msgexchange.ports import Dependency, RetryNow, Unavailable

T = TypeVar("T")

BEGIN = datetime(2026, 9, 3, 10, tzinfo=UTC)
SLOW_S = 6.0
"""Longer than any timeout of a call."""


class Died(BaseException):
    """The process is gone: no code of it may catch this."""


@dataclass
class SimulatedClock:
    """Stands still until the world moves it."""

    elapsed_s: float = 0.0

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.elapsed_s)

    def monotonic(self) -> float:
        return self.elapsed_s


@dataclass
class Chance:
    """Draws what happens next, writes it down, and lets faults fall at port calls."""

    seed: int
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    fault_rate: float = 0.03
    trace: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    paused: Callable[[], None] = lambda: None
    """A long pause of the caller: what others do meanwhile."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - reproducible on purpose

    def note(self, event: str) -> None:
        self.trace.append(f"{self.clock.elapsed_s:.3f} {event}")

    def falls(self, weight: float = 1) -> bool:
        """Rare places weigh more, so that they are struck as often as busy ones."""
        return self.random.random() < self.fault_rate * weight

    def fail(self, kind: str, point: str) -> None:
        self.faults[kind] += 1
        self.note(f"fault {kind} at {point}")

    def strike(
        self, dependency: Dependency, point: str, kinds: tuple[str, ...], weight: float = 1
    ) -> None:
        """Perhaps one of ``kinds`` at this point; raises what the caller would see."""
        if not self.falls(weight):
            return
        kind = self.random.choice(kinds)
        self.fail(kind, point)
        match kind:
            case "died":
                raise Died(point)
            case "retry-now":
                raise RetryNow(point)
            case "paused":
                self.paused()
            case "slow":
                self.clock.elapsed_s += SLOW_S
                raise Unavailable(dependency, f"timed out: {point}")
            case _:
                raise Unavailable(dependency, f"lost: {point}")


RARE = 3
BEFORE = ("unavailable", "died", "slow", "retry-now", "paused")
INSIDE = ("unavailable", "died", "retry-now")
AFTER = ("answer-lost", "died", "slow")


def exposed(port: T, name: str, dependency: Dependency, chance: Chance) -> T:
    """The same port with faults before and after every call, and around every commit."""
    return cast(T, _Exposed(port, name, dependency, chance))


class _Exposed:
    def __init__(
        self,
        port: object,
        name: str,
        dependency: Dependency,
        chance: Chance,
        *,
        inside: bool = False,
    ) -> None:
        self._port = port
        self._name = name
        self._dependency = dependency
        self._chance = chance
        self._inside = inside

    def __getattr__(self, call: str) -> Any:
        method = getattr(self._port, call)
        if not callable(method):
            return method
        point = f"{self._name}.{call}"
        if call == "transaction":
            return lambda fence: self._transaction(method, fence, point)

        def struck(*given: Any, **named: Any) -> Any:
            kinds = INSIDE if self._inside else BEFORE
            self._chance.strike(self._dependency, f"before {point}", kinds)
            answer = method(*given, **named)
            after = INSIDE if self._inside else AFTER
            self._chance.strike(self._dependency, f"after {point}", after)
            return answer

        return struck

    @contextmanager
    def _transaction(self, begin: Any, fence: Any, point: str) -> Iterator[Any]:
        self._chance.strike(self._dependency, f"before {point}", BEFORE)
        with begin(fence) as transaction:
            yield _Exposed(transaction, f"{point}", self._dependency, self._chance, inside=True)
            self._chance.strike(
                self._dependency, f"at COMMIT, undone, of {point}", ("commit-undone", "died"), RARE
            )
        self._chance.strike(
            self._dependency, f"at COMMIT, done, of {point}", ("commit-done", "died"), RARE
        )
