"""Many seeds, one after the other, and what they showed together."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgexchange.lifecycle.states import ErrorClass, EventState, MessageState
from msgexchange.simulation.world import EVENTS_SHOWN, Outcome, simulate

EXPECTED = (
    *(f"event-{state.value}" for state in EventState),
    *(state.value for state in MessageState),
    *(error.value for error in ErrorClass),
)
"""What messages and events can be; not all of it lasts to the drained end."""


@dataclass
class Found:
    """What the seeds so far showed; ``broken`` tells of the first broken promise."""

    seeds: int = 0
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    broken: str | None = None

    @property
    def not_reached(self) -> list[str]:
        return [name for name in EXPECTED if name not in self.reached]


def campaign(seeds: Sequence[int], done: Callable[[], None]) -> Found:
    """Every seed up to the first broken promise; ``done`` after each."""
    found = Found()
    for seed in seeds:
        outcome = simulate(seed)
        found.seeds += 1
        found.steps += outcome.steps
        found.faults += outcome.faults
        found.reached += outcome.reached
        done()
        if outcome.broken is not None:
            found.broken = _told(outcome)
            break
    return found


def _told(outcome: Outcome) -> str:
    last = "\n".join(outcome.trace[-EVENTS_SHOWN:])
    return f"seed {outcome.seed}, step {outcome.steps}: {outcome.broken}\nlast events:\n{last}"
