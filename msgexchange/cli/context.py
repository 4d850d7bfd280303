"""What the commands need of the rest; the composition root hands it in."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import click

from msgexchange.bench.profiling import Profile
from msgexchange.bench.run import Measured
from msgexchange.config import Settings
from msgexchange.flight.past import PastFlight
from msgexchange.ids import EventId, Flid
from msgexchange.invariants.observation import Violation
from msgexchange.lifecycle.request import Request, Wanted
from msgexchange.pipeline.letters import LetterDesk
from msgexchange.pipeline.replaying import ReplayDesk
from msgexchange.ports import Audit, JobRun, Reads, Redelivery, StoreInfo

WRONG = 1
"""Exit status: found something wrong."""
MISUSE = 2
"""Exit status: wrong use, wrong configuration."""


class Backends(Protocol):
    """Everything behind the commands, built from settings on demand."""

    def load(self, config: Path | None, data_dir: Path) -> Settings:
        """Raises ``ConfigError`` with every problem at once."""
        ...

    def reads(self, settings: Settings) -> AbstractContextManager[Reads]:
        """Consistent reads of the own store; a store that is not there is a clear error."""
        ...

    def serve(self, settings: Settings) -> int:
        """Run until a signal; the exit status."""
        ...

    def demo(self, settings: Settings, options: "DemoOptions") -> int: ...

    def verify(self, settings: Settings, *, topics: bool) -> "Verification": ...

    def bench(self, options: "BenchOptions") -> "Measured":
        """Figures on servers of the bench's own. Raises ``Failure``."""
        ...

    def bench_profile(self, options: "BenchOptions") -> "Profile":
        """Where a message's time goes. Raises ``Failure``."""
        ...

    def accept_restart(self, settings: Settings, *, by: str, reason: str) -> int:
        """Let halted intake go on; rows quarantined by it. Raises ``RestartRefused``."""
        ...

    def jobs(self, settings: Settings) -> "Sequence[JobView]":
        """Every daily job, in the order of a day."""
        ...

    def written_lives(self, settings: Settings, flid: Flid) -> Sequence[PastFlight]:
        """What history keeps of a flight, oldest life first. Raises ``HistoryFailed``."""
        ...

    def import_states(
        self,
        settings: Settings,
        file: Path,
        *,
        publishes: bool,
        by: str,
        reason: str | None,
        told: Callable[[int, int], None],
    ) -> int:
        """How many flights were loaded; ``told`` hears of each slice and of the total.

        Raises ``ImportRefused``.
        """
        ...

    def export_states(self, settings: Settings) -> Iterator[bytes]:
        """Every flight as a line of NDJSON, without its end."""
        ...

    def upgrade(self, settings: Settings, *, backup_done: bool) -> str:
        """Bring the own store to head; says what it did. Raises ``UpgradeRefused``."""
        ...

    def letters(self, settings: Settings) -> AbstractContextManager[LetterDesk]: ...

    def replays(self, settings: Settings) -> AbstractContextManager[ReplayDesk]: ...

    def audit(self, settings: Settings) -> AbstractContextManager[Audit]: ...

    def redelivery(self, settings: Settings) -> AbstractContextManager[Redelivery]: ...

    def redeliver(self, settings: Settings, event_id: EventId, *, by: str, reason: str) -> EventId:
        """Raises ``NotRedeliverable``."""
        ...

    def ask(self, settings: Settings, wanted: Wanted, *, by: str, reason: str | None) -> Request:
        """The registered request. Raises ``NotAskable``."""
        ...

    def requests(self, settings: Settings, *, every: bool, limit: int) -> Sequence[Request]:
        """Open requests or, with ``every``, closed ones too; the newest first."""
        ...

    def new_store_id(self, settings: Settings, *, by: str, reason: str | None) -> StoreInfo: ...

    def new_generation(
        self, settings: Settings, *, above: int, by: str, reason: str | None
    ) -> StoreInfo: ...

    def simulate(self, seeds: Sequence[int], done: Callable[[], None]) -> "Simulated":
        """Each seed's world in turn up to the first broken promise; ``done`` after each."""
        ...


class UpgradeRefused(Exception):
    """Nobody said that a backup of the store's data exists, or the migrations are not ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """How the demo runs."""

    ends: bool
    duration_s: float
    messages_max: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """How much is measured (``short``, ``full`` or ``tiny``), and who hears how it goes on."""

    size: str
    only: Sequence[str]
    """Parts of the measurement; none for all."""
    begin: Callable[[int], None]
    """Told how many parts there are, before the first."""
    tell: Callable[[str], None]
    """Told what was measured after each part."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What each invariant's check found, and what was not judged and why."""

    found: dict[str, list[Violation]]
    left_out: Sequence[str]

    @property
    def clean(self) -> bool:
        return not any(self.found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What the seeds showed together; ``broken`` tells of the first broken promise."""

    seeds: int
    steps: int
    faults: Mapping[str, int]
    reached: Mapping[str, int]
    not_reached: Sequence[str]
    broken: str | None


@dataclass(frozen=True, slots=True)
class JobView:
    """A daily job; ``last`` None before its first run. ``next_at`` in UTC; past: it is due."""

    name: str
    last: JobRun | None
    next_at: datetime

    @property
    def state(self) -> str:
        """In one word."""
        match self.last:
            case None:
                return "never ran"
            case JobRun(finished_at=None, outcome=None):
                return "running"
            case JobRun(finished_at=None):
                return "failed"
            case _:
                return "done"


@dataclass(slots=True)
class Session:
    """One command line: where its configuration lies, loaded when a command asks for it."""

    backends: Backends
    config: Path | None
    data_dir: Path

    def settings(self) -> Settings:
        """The configuration; ``ConfigError`` with every problem there is."""
        return self.backends.load(self.config, self.data_dir)

    def reads(self) -> AbstractContextManager[Reads]:
        return self.backends.reads(self.settings())


class Misuse(click.ClickException):
    """Wrong use: exit 2 with a text that says what to do."""

    exit_code = MISUSE


class Failure(click.ClickException):
    """Something is wrong: exit 1 with a text that says what."""

    exit_code = WRONG
