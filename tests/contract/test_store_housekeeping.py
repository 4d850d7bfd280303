"""Job runs, the history sweep, the archive and retention on every kind of own store (spec 5.4)."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text, update
from store_builders import (
    DAY,
    RICH,
    T0,
    append,
    change,
    commit,
    event,
    flight,
    later,
    lead,
    moved,
    new,
    receive,
    result,
    stored,
)

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.past import ended
from msgexchange.flight.state import FlightState
from msgexchange.ids import EventId, Fence, Flid, Identity, MailboxId
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import (
    Batch,
    Fenced,
    FlightPlace,
    Kept,
    MarkOutcome,
    NewEvent,
    Slice,
    StandingFlight,
)
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import (
    attempt_log,
    details,
    flight_change,
    flight_last_version,
    flight_schd,
    inbox_gap,
    msg_event,
    msg_event_state,
    operation_audit,
    proc_state,
    proc_state_hst,
    schd_snap_log,
)

LATER = later(86_400)
UNTIL = DAY + timedelta(days=5)


def amount(store: SqlStore, table: Any) -> int:
    with store.engine.connect() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


# --- job runs -----------------------------------------------------------------------------------


def test_a_job_that_never_ran_has_no_run(store: SqlStore) -> None:
    assert store.jobs.last_run("archive") is None
    assert store.jobs.all() == []


def test_a_run_is_remembered_from_its_beginning_to_its_end(store: SqlStore) -> None:
    fence = lead(store)
    store.jobs.begin(fence, "archive", DAY, now=T0)
    begun = store.jobs.last_run("archive")
    assert begun is not None
    assert (begun.day, begun.started_at, begun.finished_at) == (DAY, T0, None)
    store.jobs.note(fence, "archive", "failed: disk full")
    store.jobs.finish(fence, "archive", "3 moved", kept_since=T0, now=later(1))
    ended_run = store.jobs.last_run("archive")
    assert ended_run is not None
    assert (ended_run.finished_at, ended_run.outcome) == (later(1), "3 moved")
    store.jobs.begin(fence, "archive", DAY + timedelta(days=1), now=later(2))
    again = store.jobs.last_run("archive")
    assert again is not None
    assert (again.finished_at, again.outcome, again.kept_since) == (None, None, T0)
    assert [run.job for run in store.jobs.all()] == ["archive"]


def test_only_the_leader_runs_jobs(store: SqlStore) -> None:
    old = lead(store, "a")
    lead(store, "b")
    with pytest.raises(Fenced):
        store.jobs.begin(old, "archive", DAY, now=T0)
    with pytest.raises(Fenced):
        sweep(store, old, [])
    with pytest.raises(Fenced):
        archive(store, old)
    with pytest.raises(Fenced):
        drop(store, old, Kept.CHANGES)


# --- the history sweep --------------------------------------------------------------------------


def keep(store: SqlStore, fence: Fence, *states: FlightState) -> None:
    commit(store, fence, Batch(messages=(), flights=[new(state) for state in states]))


def sweep(
    store: SqlStore, fence: Fence, states: list[FlightState], events: list[NewEvent] | None = None
) -> None:
    with store.sweep.transaction(fence) as transaction:
        transaction.remove([ended(state) for state in states], events or [], now=T0)


def walk(store: SqlStore, limit: int) -> list[StandingFlight]:
    found: list[StandingFlight] = []
    place: FlightPlace | None = None
    while page := store.sweep.standing(until=UNTIL, silent_since=T0, after=place, limit=limit):
        assert len(page) <= limit
        found += page
        place = FlightPlace(page[-1].state.operation_day, page[-1].state.flid)
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_walk_meets_every_flight_once_by_day_and_then_those_without(
    store: SqlStore, limit: int
) -> None:
    fence = lead(store)
    early, late = DAY, DAY + timedelta(days=1)
    beyond = UNTIL + timedelta(days=1)
    states = [
        flight("3", 1, RICH, operation_day=early),
        flight("1", 1, RICH, operation_day=late),
        flight("2", 1, {}, operation_day=late),
        flight("9", 1, RICH, operation_day=beyond),
        flight("4", 1, RICH, operation_day=None),
        flight("5", 1, {}, operation_day=None),
    ]
    keep(store, fence, *states)
    met = walk(store, limit)
    assert [found.state for found in met] == [states[at] for at in (0, 1, 2, 4, 5)]
    assert {found.changed_at for found in met} == {T0}


def test_a_flight_without_a_day_is_met_once_it_is_silent(store: SqlStore) -> None:
    fence = lead(store)
    keep(store, fence, flight("1", operation_day=None))
    early = T0 - timedelta(seconds=1)
    assert store.sweep.standing(until=UNTIL, silent_since=early, after=None, limit=9) == []


def test_a_swept_flight_leaves_no_row_but_its_last_version(store: SqlStore) -> None:
    fence = lead(store)
    going, staying = flight("1", 4, RICH), flight("2", 1, RICH)
    keep(store, fence, going, staying)
    sweep(store, fence, [going])
    assert stored(store, fence, ["2"]) == [staying]
    with store.pump.transaction(fence) as transaction:
        assert transaction.flights([Flid("1")]) == {}
        assert transaction.last_versions([Flid("1"), Flid("2")]) == {"1": 5}
    with store.engine.connect() as connection:
        for table in (flight_schd, *details.values()):
            rows = connection.execute(select(table.c.flid).distinct()).scalars().all()
            assert set(rows) <= {"2"}, table.name


def test_a_flight_swept_again_ends_at_its_newest_version(store: SqlStore) -> None:
    fence = lead(store)
    for version in (4, 9):
        state = flight("1", version)
        keep(store, fence, state)
        sweep(store, fence, [state])
    assert amount(store, flight_last_version) == 1
    with store.pump.transaction(fence) as transaction:
        assert transaction.last_versions([Flid("1")]) == {"1": 10}


def test_the_flights_of_a_sweep_are_read_again_in_its_transaction(store: SqlStore) -> None:
    fence = lead(store)
    before = flight("1", 1, RICH)
    keep(store, fence, before)
    write = moved(before, {"FLNO": "CZ2"})
    commit(store, fence, Batch(messages=(), flights=[write]), now=later(7))
    with store.sweep.transaction(fence) as transaction:
        found = transaction.flights([Flid("1"), Flid("2")])
    assert found == {"1": StandingFlight(write.after, later(7))}


def test_events_of_a_sweep_follow_those_before_it(store: SqlStore) -> None:
    fence = lead(store)
    state = flight("1")
    keep(store, fence, state)
    append(store, fence, event())
    tombstone = NewEvent(
        target=Target.SCHD,
        type=EventType.TOMBSTONE,
        partition_key="1",
        flid=Flid("1"),
        message_id=MailboxId(1),
        state_version=2,
        operation_day=DAY,
        payload=None,
    )
    sweep(store, fence, [state], [tombstone])
    with store.engine.connect() as connection:
        rows = connection.execute(
            select(msg_event.c.event_type).order_by(msg_event.c.event_id)
        ).scalars()
        assert list(rows) == ["UPSERT", "TOMBSTONE"]


# --- the archive --------------------------------------------------------------------------------


def settle(store: SqlStore, fence: Fence, *results: Any, marked: bool = True) -> None:
    receive(store, *(one.message_id for one in results))
    for one in results:
        commit(store, fence, Batch(messages=[one]))
    if marked:
        marks = {
            one.message_id: MarkOutcome.MARKED
            for one in results
            if one.state in (MessageState.SUCCEEDED, MessageState.SKIPPED, MessageState.DEAD)
        }
        store.pump.record_marks(marks, now=T0)


def dead(id_: int) -> Any:
    return result(id_, MessageState.DEAD, error_class=ErrorClass.PROTOCOL, error="x")


def archive(
    store: SqlStore, fence: Fence, *, after: int = 0, limit: int = 100, marks: bool = True
) -> Slice:
    return store.archive.archive(
        fence,
        after=MailboxId(after),
        ended_before=later(1),
        marks=marks,
        limit=limit,
        now=LATER,
    )


def ids(store: SqlStore, table: Any) -> list[int]:
    with store.engine.connect() as connection:
        return list(connection.execute(select(table.c.msg_id).order_by(table.c.msg_id)).scalars())


def test_a_terminal_marked_message_moves_whole(store: SqlStore) -> None:
    fence = lead(store)
    settle(store, fence, result(1), result(2, MessageState.SKIPPED, error="no-match:1"))
    with store.engine.connect() as connection:
        before = connection.execute(select(proc_state).order_by(proc_state.c.msg_id)).all()
    assert archive(store, fence) == Slice(2, None)
    with store.engine.connect() as connection:
        after = connection.execute(select(proc_state_hst).order_by(proc_state_hst.c.msg_id)).all()
    assert [tuple(row)[:-1] for row in after] == [tuple(row) for row in before]
    assert {row.archived_at for row in after} == {LATER}
    assert ids(store, proc_state) == []


def test_what_is_not_done_with_stays(store: SqlStore) -> None:
    fence = lead(store)
    settle(store, fence, dead(1), dead(2), result(3))
    with store.engine.begin() as connection:
        connection.execute(
            update(proc_state).where(proc_state.c.msg_id == 2).values(discarded_at=T0)
        )
    failed = result(
        5,
        MessageState.FAILED,
        error_class=ErrorClass.INFRA,
        attempts=1,
        next_attempt_at=LATER,
        identity=None,
    )
    settle(store, fence, result(4), marked=False)
    settle(store, fence, failed)
    receive(store, 6)
    assert archive(store, fence) == Slice(2, None)
    assert ids(store, proc_state_hst) == [2, 3]
    assert ids(store, proc_state) == [1, 4, 5, 6]


def test_a_shadow_run_archives_what_it_never_marks(store: SqlStore) -> None:
    fence = lead(store)
    settle(store, fence, result(1, mark_intended=False), marked=False)
    assert archive(store, fence).done == 0
    assert archive(store, fence, marks=False).done == 1


def test_what_ended_lately_stays(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, at=LATER)
    commit(store, fence, Batch(messages=[result(1)]), now=LATER)
    store.pump.record_marks({MailboxId(1): MarkOutcome.MARKED}, now=LATER)
    assert archive(store, fence) == Slice(0, None)


def test_slices_pass_over_what_stays_and_take_all_that_goes(store: SqlStore) -> None:
    fence = lead(store)
    settle(store, fence, *(dead(id_) if id_ % 3 == 0 else result(id_) for id_ in range(1, 21)))
    after, moved_rows = 0, 0
    for _ in range(20):
        slice_ = archive(store, fence, after=after, limit=4)
        moved_rows += slice_.done
        if slice_.reached is None:
            break
        after = slice_.reached
    assert moved_rows == 14
    assert ids(store, proc_state) == [3, 6, 9, 12, 15, 18]


def test_an_archived_identity_is_still_known_and_can_be_taken_over(store: SqlStore) -> None:
    fence = lead(store)
    settle(store, fence, result(1))
    archive(store, fence)
    identity = Identity("AODB|FLOP|STAT|000001")
    with store.pump.transaction(fence) as transaction:
        assert transaction.holders([identity])[identity].message_id == 1
    settle(store, fence, result(2, identity=identity, taken_over_from=MailboxId(1)))
    with store.pump.transaction(fence) as transaction:
        assert transaction.holders([identity])[identity].message_id == 2


def test_an_archived_message_is_still_told_of(store: SqlStore) -> None:
    fence = lead(store)
    settle(store, fence, result(1))
    before = store.reads.message(MailboxId(1))
    archive(store, fence)
    after = store.reads.message(MailboxId(1))
    assert before is not None
    assert after is not None
    assert after.archived_at is not None
    assert replace(after, archived_at=None) == before


# --- retention ----------------------------------------------------------------------------------


def drop(store: SqlStore, fence: Fence, kept: Kept, *, after: int = 0, limit: int = 100) -> Slice:
    return store.retention.drop(fence, kept, older_than=later(60), after=after, limit=limit)


def drop_all(store: SqlStore, fence: Fence, kept: Kept, limit: int) -> int:
    dropped = after = 0
    for _ in range(100):
        slice_ = drop(store, fence, kept, after=after, limit=limit)
        dropped += slice_.done
        if slice_.reached is None:
            return dropped
        after = slice_.reached
    raise AssertionError("it does not end")


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_old_changes_go_and_newer_ones_stay(store: SqlStore, limit: int) -> None:
    fence = lead(store)
    for id_ in range(1, 6):
        rows = [change(f"{n}", id_, id_) for n in range(3)]
        at = T0 if id_ < 4 else LATER
        commit(store, fence, Batch(messages=(), changes=rows), now=at)
    assert drop_all(store, fence, Kept.CHANGES, limit) == 9
    assert amount(store, flight_change) == 6


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_sent_events_go_and_waiting_and_dead_ones_stay(store: SqlStore, limit: int) -> None:
    fence = lead(store)
    append(store, fence, *(event(f"{n}", id_=n) for n in range(1, 7)))
    append(store, fence, event("7", id_=7, target=Target.MAILBOX_OUT))
    append(store, fence, event("8", id_=8), now=LATER)
    state = msg_event_state
    with store.engine.begin() as connection:
        changed: dict[int, dict[str, Any]] = {
            1: {"state": "SENT", "sent_at": T0},
            2: {"state": "SUPERSEDED", "superseded_by": 3},
            3: {"state": "DEAD"},
            4: {"state": "DEAD", "redelivered_as": 9},
            5: {"state": "CANCELLED"},
            # A dead request is asked anew, never sent again.
            7: {"state": "DEAD"},
            8: {"state": "SENT", "sent_at": LATER},
        }
        for id_, values in changed.items():
            connection.execute(update(state).where(state.c.event_id == id_).values(values))
    assert drop_all(store, fence, Kept.SENT_EVENTS, limit) == 5
    for table in (msg_event, msg_event_state):
        with store.engine.connect() as connection:
            left = connection.execute(select(table.c.event_id).order_by(table.c.event_id))
            assert list(left.scalars()) == [3, 6, 8]


def test_the_event_a_topics_position_stands_for_stays(store: SqlStore) -> None:
    fence = lead(store)
    append(store, fence, event("1"), event("2"))
    with store.engine.begin() as connection:
        connection.execute(update(msg_event_state).values(state="SENT", sent_at=T0))
        connection.execute(
            text(
                "INSERT INTO delivery_mark (target, event_id, nonce, marked_at) "
                "SELECT 'KAFKA:schd', 2, 5, created_at FROM msg_event WHERE event_id = 2"
            )
        )
    assert drop(store, fence, Kept.SENT_EVENTS).done == 1
    assert store.positions.known(Target.SCHD, EventId(2)) is not None


def test_old_plans_go_once_their_days_are_as_old(store: SqlStore) -> None:
    fence = lead(store)
    with store.engine.begin() as connection:
        for id_, last_day, at in (
            (1, DAY - timedelta(days=1), T0),
            (2, date(2099, 1, 1), T0),
            (3, None, T0),
            (4, DAY - timedelta(days=1), LATER),
        ):
            row = {
                "msg_id": id_,
                "received_at": at,
                "kind": "SCHD/DNLD",
                "scope_end": last_day,
                "flights": 1,
                "outcome": "applied",
            }
            connection.execute(insert(schd_snap_log), row)
    assert drop(store, fence, Kept.PLANS).done == 2
    assert ids(store, schd_snap_log) == [2, 4]


def test_old_acts_of_people_go(store: SqlStore) -> None:
    fence = lead(store)
    with store.engine.begin() as connection:
        for id_, at in ((9, T0), (2, T0), (5, LATER)):
            connection.execute(
                insert(operation_audit), {"audit_id": id_, "at": at, "actor": "a", "act": "b"}
            )
    assert drop_all(store, fence, Kept.AUDIT, 1) == 2
    assert amount(store, operation_audit) == 1


def test_attempts_of_an_open_message_stay(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    with store.engine.begin() as connection:
        for id_, attempt, at in ((1, 1, T0), (1, 2, T0), (7, 1, T0), (7, 2, T0), (8, 1, LATER)):
            connection.execute(
                insert(attempt_log),
                {"msg_id": id_, "round": 0, "attempt": attempt, "at": at, "error_class": "INFRA"},
            )
    assert drop(store, fence, Kept.ATTEMPTS).done == 2
    assert sorted(set(ids(store, attempt_log))) == [1, 8]


def test_only_gaps_far_below_w_that_are_looked_at_no_more_go(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 50_000)
    rows: list[tuple[int, str, Any, Any]] = [
        (1, "PERMANENT", T0, None),
        (2, "PERMANENT", T0, LATER),
        (3, "OPEN", None, None),
        (4, "FILLED", LATER, None),
        (45_000, "PERMANENT", T0, None),
    ]
    with store.engine.begin() as connection:
        for lo, decision, decided_at, next_look_at in rows:
            connection.execute(
                insert(inbox_gap),
                {
                    "lo": lo,
                    "hi": lo,
                    "step": 1,
                    "first_seen": T0,
                    "looks": 1,
                    "decision": decision,
                    "decided_at": decided_at,
                    "next_look_at": next_look_at,
                },
            )
    assert drop(store, fence, Kept.GAPS).done == 1
    with store.engine.connect() as connection:
        left = connection.execute(select(inbox_gap.c.lo).order_by(inbox_gap.c.lo)).scalars()
        assert list(left) == [2, 3, 4, 45_000]
