"""A flight as it was at a moment, unfolded from what is kept of its versions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import deletion, plan, status
from fakes.line import Line
from msgexchange.codec.encode import encode
from msgexchange.flight.decision import Decision
from msgexchange.flight.merge import difference
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.flight.versions import Change, Moment, NotKept, StateThen, state_then
from msgexchange.ids import Flid, MailboxId
from msgexchange.pipeline.provenance import provenance
from msgexchange.store.change_views import read_changes
from msgexchange.store.sql_store import SqlStore
from strategies import contents

T0 = datetime(2026, 9, 3, 10, 30, tzinfo=UTC)
FLID = Flid("9001")
DAYS = (None, date(2026, 9, 3), date(2026, 9, 4))


@dataclass(frozen=True)
class Kept:
    version: int
    message_id: MailboxId
    at: datetime
    changes: Sequence[Change]


def at(minute: float) -> datetime:
    return T0 + timedelta(minutes=minute)


def state(version: int, content: dict[str, object] | None = None, **given: object) -> FlightState:
    blank = FlightState(
        flid=FLID,
        operation_day=None,
        status=FlightStatus.ACTIVE,
        version=version,
        last_message_id=MailboxId(100 + version),
        content={},
    )
    return replace(blank, content=content or {}, **given)  # type: ignore[arg-type]


def kept(states: Sequence[FlightState], before: FlightState | None = None) -> list[Kept]:
    """What the store keeps of these states, one a minute, as it reads it back."""
    found = []
    for after in states:
        changes = difference(before.content if before else {}, after.content)
        stored = encode(provenance(Decision(before, after, changes)))
        told = read_changes(stored.decode())
        found.append(Kept(after.version, after.last_message_id, at(after.version), told))
        before = after
    return found


def then(
    versions: Sequence[Kept], minute: float, known: Sequence[FlightState] = ()
) -> StateThen | None:
    return state_then(FLID, versions, known, Moment(at=at(minute)))


HISTORIES = st.lists(
    st.tuples(contents(), st.sampled_from(FlightStatus), st.sampled_from(DAYS)),
    min_size=1,
    max_size=6,
).map(
    lambda told: [
        state(n, dict(content), status=status_, operation_day=day)
        for n, (content, status_, day) in enumerate(told, 1)
    ]
)


@given(HISTORIES, st.data())
def test_every_version_is_unfolded_from_either_end(
    states: list[FlightState], data: st.DataObject
) -> None:
    rows = kept(states)
    wanted = data.draw(st.sampled_from(states))
    forward = then(rows, wanted.version)
    assert forward is not None
    assert forward.state == wanted
    late = rows[wanted.version - 1 :]
    if wanted.version > 1:
        backward = then(late, wanted.version, known=[states[-1]])
        assert backward is not None
        assert backward.state == wanted


def test_between_two_versions_the_earlier_one_stands() -> None:
    rows = kept([state(1, {"STAT": "A"}), state(2, {"STAT": "B"})])
    found = then(rows, 1.5)
    assert found is not None
    assert (found.state.content, found.since) == ({"STAT": "A"}, at(1))
    assert found.next is rows[1]
    assert then(rows, 0.5) is None
    last = then(rows, 99)
    assert last is not None
    assert last.next is None


def test_messages_of_one_commit_are_told_apart_by_their_ids() -> None:
    rows = [replace(row, at=at(1)) for row in kept([state(n, {"N": str(n)}) for n in (1, 2, 3)])]
    found = state_then(FLID, rows, [], Moment(at=at(1), message_id=MailboxId(102)))
    assert found is not None
    assert found.state.version == 2


def test_a_life_after_a_sweep_begins_with_nothing_of_the_one_before() -> None:
    first = [state(1, {"STAT": "A", "FLNO": "CZ1"}), state(2, {"STAT": "B", "FLNO": "CZ1"})]
    second = [state(4, {"STAT": "C"}), state(5, {"STAT": "D"})]
    rows = [*kept(first), *kept(second)]
    for wanted in (*first, *second):
        found = then(rows, wanted.version)
        assert found is not None
        assert found.state == wanted
    old = then(rows[1:], 2, known=[second[1], first[1]])
    assert old is not None
    assert old.state == first[1]


def test_what_is_past_retention_is_said_and_not_guessed() -> None:
    states = [state(n, {"N": str(n)}) for n in (1, 2, 3, 4)]
    rows = kept(states)
    with pytest.raises(NotKept, match="begins with version 3"):
        then(rows[2:], 2, known=[states[-1]])
    with pytest.raises(NotKept, match="neither its first version nor its last"):
        then(rows[1:], 2)
    with pytest.raises(NotKept, match="version 3 of flight 9001 is not kept"):
        then([rows[1], rows[3]], 2, known=[states[-1]])
    with pytest.raises(NotKept, match="version 2 of flight 9001 is not kept"):
        then([rows[0], rows[2]], 3)


def test_what_the_pipeline_stored_unfolds_to_what_it_had(memory_store: SqlStore) -> None:
    """Plans, operations, a deletion and the flight's coming back, each state read as it stood."""
    line = Line(memory_store)
    texts = [
        plan("9001"),
        status("9001", "BRD", seqn=2),
        plan("9001", seqn=3),
        deletion("9001", seqn=4),
        plan("9001", seqn=5),
        status("9001", "DEP", seqn=6),
    ]
    stood = []
    for text in texts:
        line.clock.seconds += 60
        line.receive([text])
        line.run()
        found = memory_store.reads.flight(FLID)
        assert found is not None
        stood.append(found)
    assert [one.status for one in stood].count(FlightStatus.DELETED) == 1
    rows = memory_store.reads.changes(FLID)
    assert [row.version for row in rows] == [1, 2, 3, 4, 5, 6]
    for wanted, row in zip(stood, rows, strict=True):
        for kept_rows in (rows, rows[1:]):
            if row not in kept_rows:
                continue
            then_ = state_then(FLID, kept_rows, [stood[-1]], Moment(at=row.at))
            assert then_ is not None
            assert then_.state == wanted
    assert stood[-1].content["STAT"] == "DEP"
