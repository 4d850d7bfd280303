"""The history sweep on an in-memory store: nothing lost, nothing twice, whatever comes between."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select
from store_builders import DAY, RICH, commit, flight, lead, moved, new

from fakes.faults import Fault, Faults, FaultyPort
from msgexchange.flight.past import PastFlight, SweepPolicy
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.history.files import HistoryFiles
from msgexchange.ids import Fence, Flid
from msgexchange.pipeline.daily import Done
from msgexchange.pipeline.history_sweep import HistorySweep, SweepRules
from msgexchange.ports import (
    Batch,
    Dependency,
    HistoryFailed,
    HistoryStore,
    Unavailable,
)
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import msg_event

ZONE = "Asia/Shanghai"
RULES = SweepRules(policy=SweepPolicy(timezone=ZoneInfo(ZONE)), timezone=ZONE, flights_max=2)
LONG_AFTER = datetime.fromisoformat("2026-09-20T02:00:00+00:00")
OVER = {"ACTM": "03SEP261804", "FLNO": "CZ1"}


@dataclass
class Standing:
    """A clock long after the flights' day."""

    at: datetime = LONG_AFTER

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return 0.0


@dataclass
class Site:
    store: SqlStore
    history: HistoryFiles
    fence: Fence = field(init=False)

    def __post_init__(self) -> None:
        self.fence = lead(self.store)

    def keep(self, *states: FlightState) -> None:
        commit(self.store, self.fence, Batch(messages=(), flights=[new(s) for s in states]))

    def sweep(
        self,
        *,
        store: Any = None,
        history: HistoryStore | str | None = "files",
        rules: SweepRules = RULES,
    ) -> Done:
        duty = HistorySweep(
            store=store or self.store.sweep,
            history=self.history if isinstance(history, str) else history,
            clock=Standing(),
            fence=self.fence,
            rules=rules,
        )
        run = duty.slices(now=LONG_AFTER)
        while True:
            try:
                next(run)
            except StopIteration as end:
                done: Done = end.value
                return done

    def left(self) -> list[str]:
        states = self.store.reads.flights(operation_day=None, status=None, after=None, limit=999)
        return [state.flid for state in states]

    def events(self) -> list[tuple[str, str, int]]:
        with self.store.engine.connect() as connection:
            rows = connection.execute(select(msg_event).order_by(msg_event.c.event_id))
            return [(row.flid, row.event_type, row.state_version) for row in rows]

    def lives(self, flid: str) -> Sequence[PastFlight]:
        return self.history.lives(Flid(flid))


@pytest.fixture
def site(memory_store: SqlStore, tmp_path: Path) -> Site:
    return Site(memory_store, HistoryFiles(tmp_path / "history"))


def test_past_flights_are_written_whole_and_leave_with_a_tombstone(site: Site) -> None:
    arrived = flight("1", 3, {**OVER, **RICH})
    deleted = flight("2", 5, RICH, status=FlightStatus.DELETED)
    fresh = flight("3", 1, OVER, operation_day=LONG_AFTER.date())
    site.keep(arrived, deleted, fresh)
    assert site.sweep().outcome == "2 flights written to history and deleted"
    assert site.left() == ["3"]
    assert [life.state for life in site.lives("1")] == [arrived]
    assert [life.state for life in site.lives("2")] == [deleted]
    assert site.events() == [("1", "NOTICE", 4), ("1", "TOMBSTONE", 4)]


def test_a_run_goes_through_all_pages(site: Site) -> None:
    site.keep(*(flight(f"{n:02}", 1, OVER, operation_day=None) for n in range(4)))
    site.keep(*(flight(f"d{n}", 1, OVER, operation_day=DAY) for n in range(5)))
    site.sweep()
    assert site.left() == []


def test_without_a_history_nothing_is_deleted_unless_the_site_says_so(site: Site) -> None:
    site.keep(flight("1", 1, OVER))
    assert "history.store is none" in site.sweep(history=None).outcome
    assert site.left() == ["1"]
    site.sweep(history=None, rules=SweepRules(policy=RULES.policy, timezone=ZONE, discards=True))
    assert site.left() == []


def test_a_history_that_fails_costs_no_flight(site: Site, tmp_path: Path) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    site.keep(flight("1", 1, OVER), flight("2", 1, OVER))
    with pytest.raises(HistoryFailed):
        site.sweep(history=HistoryFiles(tmp_path / "full", sync=full))
    assert site.left() == ["1", "2"]
    assert site.events() == []
    site.sweep()
    assert site.left() == []


class Meddling(HistoryFiles):
    """Somebody changes a flight right after it was written."""

    def __init__(self, folder: Path, meddle: Callable[[], None]) -> None:
        super().__init__(folder)
        self._meddle = meddle

    def write(self, flights: Sequence[PastFlight]) -> None:
        super().write(flights)
        self._meddle()


def test_a_flight_that_changes_between_write_and_deletion_stays(site: Site, tmp_path: Path) -> None:
    before = flight("1", 1, OVER)
    site.keep(before, flight("2", 1, OVER))
    changed = moved(before, {"FLNO": "CZ1", "ACTM": ""})

    def meddle() -> None:
        commit(site.store, site.fence, Batch(messages=(), flights=[changed]), now=LONG_AFTER)

    site.sweep(history=Meddling(tmp_path / "history", meddle))
    assert site.left() == ["1"]
    assert site.store.reads.flight(Flid("1")) == changed.after
    assert [flid for flid, *_ in site.events()] == ["2", "2"]


def test_wherever_a_sweep_breaks_off_the_next_one_finishes_it(site: Site, tmp_path: Path) -> None:
    """At each call of each port in turn, before it and after it."""

    def lost(_call: str) -> None:
        raise Unavailable(Dependency.STORE, "gone")

    flids = [f"{n}" for n in range(5)]
    at = 0
    while True:
        at += 1
        for flid in flids:
            site.keep(flight(flid, 10 * at, OVER))
        faults = Faults()
        faults.arm(Fault(lost, at=at))
        store = FaultyPort(site.store.sweep, faults)
        history: Any = FaultyPort(site.history, faults)
        try:
            site.sweep(store=store, history=history)
        except Unavailable:
            site.sweep()
        assert site.left() == []
        for flid in flids:
            assert [life.state.version for life in site.lives(flid)] == [
                10 * turn for turn in range(1, at + 1)
            ]
        told = [(flid, version) for flid, kind, version in site.events() if kind == "TOMBSTONE"]
        assert sorted(told) == sorted(
            (flid, 10 * turn + 1) for flid in flids for turn in range(1, at + 1)
        )
        if not faults.struck.is_set():
            break
    assert at > 20


def test_a_silent_flight_keeps_its_place_until_the_silence_is_long_enough(site: Site) -> None:
    with site.store.pump.transaction(site.fence) as transaction:
        transaction.commit_batch(
            Batch(messages=(), flights=[new(flight("1", 1, {"FLNO": "CZ1"}))]),
            now=LONG_AFTER - timedelta(hours=23),
            codec_version="1",
        )
    site.sweep()
    assert site.left() == ["1"]
