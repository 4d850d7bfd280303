"""How much is measured: for a few minutes, for a long night, or only to see that all of it runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgexchange.bench.housekeeping import STANDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured; ``flights`` take the operations, ``plan_flights`` make the plan."""

    rounds: int
    batched: int
    singles: int
    flights: int
    plan_flights: int
    plan_rounds: int
    flush_flights: int
    flush_backlog: int
    flush_rounds: int
    aged_flights: int
    aged_messages: int
    paced: int
    paced_rounds: int
    backlog: int
    backlog_few: int
    backlog_rounds: int
    delay_s: float
    delay_rounds: int
    grown: int
    grown_rounds: int
    idle_s: float
    idle_rounds: int


SHORT = Size(
    rounds=3,
    batched=5_000,
    singles=800,
    flights=1_000,
    plan_flights=10_000,
    plan_rounds=3,
    flush_flights=5_000,
    flush_backlog=100_000,
    flush_rounds=2,
    aged_flights=1_000,
    aged_messages=10_000,
    paced=500,
    paced_rounds=1,
    backlog=100_000,
    backlog_few=10_000,
    backlog_rounds=1,
    delay_s=4,
    delay_rounds=1,
    grown=100_000,
    grown_rounds=1,
    idle_s=10,
    idle_rounds=1,
)
FULL = Size(
    rounds=7,
    batched=20_000,
    singles=3_000,
    flights=1_000,
    plan_flights=10_000,
    plan_rounds=7,
    flush_flights=5_000,
    flush_backlog=100_000,
    flush_rounds=5,
    aged_flights=5_000,
    aged_messages=50_000,
    paced=3_000,
    paced_rounds=3,
    backlog=1_000_000,
    backlog_few=10_000,
    backlog_rounds=1,
    delay_s=30,
    delay_rounds=3,
    grown=2_000_000,
    grown_rounds=3,
    idle_s=60,
    idle_rounds=3,
)
TINY = Size(
    rounds=1,
    batched=60,
    singles=20,
    flights=20,
    plan_flights=40,
    plan_rounds=1,
    flush_flights=20,
    flush_backlog=100,
    flush_rounds=1,
    aged_flights=STANDING + 10,
    aged_messages=2 * STANDING,
    paced=20,
    paced_rounds=1,
    backlog=1_500,
    backlog_few=100,
    backlog_rounds=1,
    delay_s=0.05,
    delay_rounds=1,
    grown=200,
    grown_rounds=1,
    idle_s=0.1,
    idle_rounds=1,
)
"""Shows that everything is measured and checked; its figures mean nothing."""

SIZES: Mapping[str, Size] = {"short": SHORT, "full": FULL, "tiny": TINY}
