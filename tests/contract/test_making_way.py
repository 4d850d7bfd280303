"""A plan that clashes with flights of a past day: they leave for history as the plan commits."""

from collections.abc import Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select

from factories import deletion, plan, status
from fakes.line import Line, decode_or_die
from msgexchange.flight.past import PastFlight, SweepPolicy
from msgexchange.flight.state import FlightState
from msgexchange.history.files import HistoryFiles
from msgexchange.ids import Flid, MailboxId
from msgexchange.invariants.checker import violations
from msgexchange.invariants.observation import Observation
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import HistoryFailed, HistoryStore
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import msg_event

SWEEP = SweepPolicy(timezone=ZoneInfo("Asia/Shanghai"))
LONG_AFTER_S = 17 * 86_400
LATER_DAY = {"day": "20SEP26", "dttm": "20260920180000"}


class Failing:
    """A history store that takes nothing until ``heals``."""

    def __init__(self, inner: HistoryStore) -> None:
        self._inner = inner
        self.broken = True

    def write(self, flights: Sequence[PastFlight]) -> None:
        if self.broken:
            raise HistoryFailed("the disk is full")
        self._inner.write(flights)

    def lives(self, flid: Flid) -> Sequence[PastFlight]:
        return self._inner.lives(flid)

    def tidy(self) -> bool:
        return False


@pytest.fixture(params=["files", "table"])
def kept_in(request: pytest.FixtureRequest, store: SqlStore, tmp_path: Path) -> HistoryStore:
    return store.history if request.param == "table" else HistoryFiles(tmp_path / "history")


def events(store: SqlStore) -> list[tuple[str, str, int]]:
    with store.engine.connect() as connection:
        rows = connection.execute(select(msg_event).order_by(msg_event.c.event_id))
        return [(row.flid, row.event_type, row.state_version) for row in rows]


def standing(store: SqlStore, flid: str = "9001") -> FlightState:
    found = store.reads.flight(Flid(flid))
    assert found is not None
    return found


def check(line: Line) -> None:
    facts = line.store.evidence.facts()
    seen = Observation(
        store=facts,
        marks={MailboxId(id_): True for id_ in line.mailbox.rows},
        decoded={
            fact.message_id: decode_or_die(line.mailbox.rows[fact.message_id])
            for fact in facts.messages
            if fact.state is MessageState.SUCCEEDED
        },
        topics=None,
        drained=False,
    )
    found = {name: list(map(str, broken)) for name, broken in violations(seen).items() if broken}
    assert not found


def test_past_flights_make_way_and_the_plan_starts_a_new_life(
    store: SqlStore, kept_in: HistoryStore
) -> None:
    line = Line(store, sweep=SWEEP, history=kept_in)
    line.receive([plan("9001", "9002"), status("9001", "DEP"), deletion("9002")])
    line.run()
    before = standing(store)
    line.clock.seconds = LONG_AFTER_S
    told = len(events(store))
    line.receive([plan("9001", "9002", "9003", seqn=4, **LATER_DAY)])
    line.run()
    assert line.states() == [MessageState.SUCCEEDED] * 4
    # 9002 was announced deleted already; the new lives' versions go on where the old ones ended.
    assert events(store)[told:] == [
        ("9001", "NOTICE", 3),
        ("9001", "TOMBSTONE", 3),
        ("9001", "NOTICE", 4),
        ("9001", "UPSERT", 4),
        ("9002", "NOTICE", 3),
        ("9002", "UPSERT", 3),
        ("9003", "NOTICE", 1),
        ("9003", "UPSERT", 1),
    ]
    after = standing(store)
    assert (after.version, str(after.operation_day)) == (4, "2026-09-20")
    assert "STAT" not in after.content
    assert [life.state for life in kept_in.lives(Flid("9001"))] == [before]
    assert [life.state.version for life in kept_in.lives(Flid("9002"))] == [2]
    check(line)


def test_one_flight_that_is_not_past_refuses_the_plan_and_nobody_leaves(
    store: SqlStore, kept_in: HistoryStore
) -> None:
    line = Line(store, sweep=SWEEP, history=kept_in)
    line.receive([plan("9001", "9002")])
    line.run()
    line.clock.seconds = LONG_AFTER_S
    line.receive([status("9002", "BRD")])
    line.run()
    told = events(store)
    line.receive([plan("9001", "9002", seqn=4, **LATER_DAY)])
    line.run()
    refused = line.message(3)
    assert (refused.state, refused.error_class) == (MessageState.DEAD, ErrorClass.PROTOCOL)
    assert events(store) == told
    assert str(standing(store).operation_day) == "2026-09-03"
    assert kept_in.lives(Flid("9001")) == []
    check(line)


def test_a_flight_changed_right_before_the_plan_is_judged_and_written_as_changed(
    store: SqlStore, kept_in: HistoryStore
) -> None:
    line = Line(store, sweep=SWEEP, history=kept_in)
    line.receive([plan("9001")])
    line.run()
    line.clock.seconds = LONG_AFTER_S
    # Both in one batch: the deletion makes the flight past, at the version it leads to.
    line.receive([deletion("9001"), plan("9001", seqn=4, **LATER_DAY)])
    line.run()
    assert line.states() == [MessageState.SUCCEEDED] * 3
    assert [life.state.version for life in kept_in.lives(Flid("9001"))] == [2]
    assert standing(store).version == 3
    check(line)


def test_a_history_that_fails_holds_the_plan_back_and_costs_no_flight(
    store: SqlStore, kept_in: HistoryStore
) -> None:
    failing = Failing(kept_in)
    line = Line(store, sweep=SWEEP, history=failing)
    line.receive([plan("9001")])
    line.run()
    line.clock.seconds = LONG_AFTER_S
    told = events(store)
    line.receive([plan("9001", seqn=4, **LATER_DAY), plan("9005", seqn=5, **LATER_DAY)])
    line.run()
    waiting = line.message(2)
    assert (waiting.state, waiting.error_class) == (MessageState.FAILED, ErrorClass.INFRA)
    assert "the disk is full" in (waiting.error or "")
    assert line.message(3).state is MessageState.PENDING
    assert events(store) == told
    assert standing(store).version == 1
    failing.broken = False
    line.run(seconds=5)
    assert line.states() == [MessageState.SUCCEEDED] * 3
    assert [life.state.version for life in kept_in.lives(Flid("9001"))] == [1]
    check(line)


def test_without_a_sweep_a_clash_is_refused(store: SqlStore) -> None:
    line = Line(store)
    line.receive([plan("9001")])
    line.run()
    line.clock.seconds = LONG_AFTER_S
    line.receive([plan("9001", seqn=4, **LATER_DAY)])
    line.run()
    assert line.message(2).error_class is ErrorClass.PROTOCOL


def test_where_flights_may_go_unwritten_they_make_way_at_once(store: SqlStore) -> None:
    line = Line(store, sweep=SWEEP, history=None)
    line.receive([plan("9001")])
    line.run()
    line.clock.seconds = LONG_AFTER_S
    line.receive([plan("9001", seqn=4, **LATER_DAY)])
    line.run()
    assert standing(store).version == 3
    check(line)


def test_a_stale_plan_makes_nobody_leave(store: SqlStore, kept_in: HistoryStore) -> None:
    line = Line(store, sweep=SWEEP, history=kept_in)
    line.receive([plan("9001"), plan("9009", seqn=2, **LATER_DAY)])
    line.run()
    line.clock.seconds = LONG_AFTER_S
    line.receive([plan("9001", seqn=4, day="20SEP26", dttm="20260919180000")])
    line.run()
    assert (line.message(3).error or "").startswith("stale-plan")
    assert str(standing(store).operation_day) == "2026-09-03"
    assert kept_in.lives(Flid("9001")) == []
