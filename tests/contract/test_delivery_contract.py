"""What both ways to Kafka promise alike, and what exactly-once promises on top of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest
from store_builders import append, event, lead

from fakes.steps import Told
from fakes.topic import AllOrNothing, OneByOne, Topic
from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.position import Position
from msgexchange.lifecycle.states import EventState
from msgexchange.pipeline.delivery import DeliveryRules
from msgexchange.pipeline.dispatch import Dispatch
from msgexchange.pipeline.dispatch_once import DispatchOnce
from msgexchange.pipeline.flush_once import FlushOnce
from msgexchange.pipeline.publish_flights import SchdFlush
from msgexchange.pipeline.publishing import Publisher, Publishing
from msgexchange.pipeline.step import Step
from msgexchange.ports import DeliveryStopped, Dependency, Fenced, OutboxEntry, Unavailable
from msgexchange.store.sql_store import SqlStore

MSG, SCHD = Target.MSG, Target.SCHD
RULES = DeliveryRules(window_max=4, attempts_max=2, backoff=Backoff(base=timedelta(seconds=1)))
SENT, DEAD, PENDING = EventState.SENT, EventState.DEAD, EventState.PENDING


@dataclass
class Hands:
    """A clock whose hands the test moves."""

    at: datetime = datetime(2026, 9, 3, 10, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def move(self, by: timedelta) -> None:
        self.at += by


class Way(Protocol):
    def dispatch(self) -> Step: ...
    def flush(self) -> Step: ...


@dataclass
class Scene:
    """A store, its topics and a clock."""

    store: SqlStore
    fence: Fence
    clock: Hands = field(default_factory=Hands)
    told: Told = field(default_factory=Told)
    msg: Topic = field(default_factory=Topic)
    schd: Topic = field(default_factory=Topic)
    flushes: int = 0

    def flush_id(self) -> str:
        self.flushes += 1
        return f"f{self.flushes}"

    def fill(self, target: Target, *values: str, flid: Callable[[int], str] = str) -> None:
        append(
            self.store,
            self.fence,
            *(
                event(flid(n), target=target, version=n + 1, payload=f'"{value}"'.encode())
                for n, value in enumerate(values)
            ),
        )

    def states(self) -> dict[int, EventState]:
        return {fact.event_id: fact.state for fact in self.store.evidence.facts().events}


@dataclass
class AtLeastOnce:
    scene: Scene

    def dispatch(self) -> Step:
        scene = self.scene
        return Dispatch(
            target=MSG,
            store=scene.store.outbox,
            producer=OneByOne(scene.msg),
            clock=scene.clock,
            fence=scene.fence,
            generation=1,
            rules=RULES,
            idle_poll=timedelta(seconds=1),
            telemetry=scene.told,
        )

    def flush(self) -> Step:
        scene = self.scene
        return SchdFlush(
            store=scene.store.schd,
            producer=OneByOne(scene.schd),
            clock=scene.clock,
            fence=scene.fence,
            generation=1,
            rules=RULES,
            flush_period=timedelta(seconds=3),
            new_flush_id=scene.flush_id,
            telemetry=scene.told,
        )


@dataclass
class ExactlyOnce:
    scene: Scene
    on_msg: AllOrNothing = field(init=False)
    on_schd: AllOrNothing = field(init=False)

    def __post_init__(self) -> None:
        self.on_msg = AllOrNothing(self.scene.msg)
        self.on_schd = AllOrNothing(self.scene.schd)

    def publishing(self, target: Target) -> Publishing:
        scene = self.scene
        return Publishing(
            Publisher(
                target=target,
                info=scene.store.leader.info(),
                fence=scene.fence,
                check_fence=scene.store.outbox.check_fence,
            ),
            producer=self.on_msg if target is MSG else self.on_schd,
            positions=scene.store.positions,
            clock=scene.clock,
            telemetry=scene.told,
        )

    def dispatch(self) -> Step:
        scene = self.scene
        return DispatchOnce(
            target=MSG,
            store=scene.store.outbox,
            publishing=self.publishing(MSG),
            clock=scene.clock,
            fence=scene.fence,
            generation=1,
            rules=RULES,
            idle_poll=timedelta(seconds=1),
            telemetry=scene.told,
        )

    def flush(self) -> Step:
        scene = self.scene
        return FlushOnce(
            store=scene.store.schd,
            publishing=self.publishing(SCHD),
            clock=scene.clock,
            fence=scene.fence,
            generation=1,
            rules=RULES,
            flush_period=timedelta(seconds=3),
            new_flush_id=scene.flush_id,
            telemetry=scene.told,
        )


@pytest.fixture
def scene(memory_store: SqlStore) -> Scene:
    return Scene(memory_store, lead(memory_store))


@pytest.fixture(params=[AtLeastOnce, ExactlyOnce])
def way(request: pytest.FixtureRequest, scene: Scene) -> Way:
    made: Way = request.param(scene)
    return made


@pytest.fixture
def once(scene: Scene) -> ExactlyOnce:
    return ExactlyOnce(scene)


def run(step: Step, scene: Scene, turns: int = 40) -> None:
    """Turn until it would wait longer than a back-off, moving the clock along."""
    for _ in range(turns):
        scene.clock.move(timedelta(seconds=step.step()))


def test_every_change_goes_out_once_and_in_order(scene: Scene, way: Way) -> None:
    scene.fill(MSG, *"abcdefghij")
    run(way.dispatch(), scene)
    assert scene.msg.ids() == list(range(1, 11))
    assert set(scene.states().values()) == {SENT}


@pytest.mark.parametrize("place", [0, 2, 3, 9])
def test_a_refused_record_dies_alone_and_before_its_successors_leave(
    scene: Scene, way: Way, place: int
) -> None:
    scene.fill(MSG, *"abcdefghij")
    scene.msg.refused = {f'"{"abcdefghij"[place]}"'.encode()}
    dispatch = way.dispatch()
    while scene.states()[place + 1] is PENDING:
        assert all(id_ <= place for id_ in scene.msg.ids())
        scene.clock.move(timedelta(seconds=dispatch.step()))
    run(dispatch, scene)
    assert scene.msg.ids() == [n for n in range(1, 11) if n != place + 1]
    assert scene.states()[place + 1] is DEAD
    assert scene.told.alerts == ["dead-event"]
    lines = scene.told.lines_of("event.failed")
    assert [line["attempts"] for line in lines] == [1, 2]
    assert [line["next_attempt_at"] is None for line in lines] == [False, True]
    assert {line["event_id"] for line in lines} == {place + 1}
    named = {"message_id", "error_class", "error", "state", "trace_id"}
    assert all(named <= set(line) for line in lines)


def test_a_record_over_the_limit_never_reaches_the_broker(scene: Scene, way: Way) -> None:
    scene.fill(MSG, "a", "x" * 1_100_000, "b")
    run(way.dispatch(), scene)
    assert scene.msg.ids() == [1, 3]
    assert scene.states()[2] is DEAD


def test_an_outage_charges_nobody(scene: Scene, way: Way) -> None:
    scene.fill(MSG, *"abc")
    scene.fill(SCHD, *"abc")
    scene.msg.down = scene.schd.down = True
    dispatch, flush = way.dispatch(), way.flush()
    for _ in range(5):
        for step in (dispatch, flush):
            with pytest.raises(Unavailable):
                step.step()
    entries = scene.store.outbox.pending(MSG, limit=9, bytes_max=1 << 20)
    assert {entry.attempts for entry in entries} == {0}
    scene.msg.down = scene.schd.down = False
    run(dispatch, scene)
    run(flush, scene)
    assert scene.msg.ids() == [1, 2, 3]
    assert set(scene.states().values()) == {SENT}


def test_a_fenced_process_sends_nothing(scene: Scene, way: Way) -> None:
    scene.fill(MSG, *"abc")
    scene.fill(SCHD, *"abc")
    dispatch, flush = way.dispatch(), way.flush()
    lead(scene.store, "the next")
    for step in (dispatch, flush):
        with pytest.raises(Fenced):
            step.step()
    assert scene.msg.records == scene.schd.records == []


def test_the_newest_state_of_each_flight_stands_for_the_others(scene: Scene, way: Way) -> None:
    scene.fill(SCHD, *"abcdef", flid=lambda n: f"F{n % 2}")
    run(way.flush(), scene)
    assert scene.schd.ids() == [5, 6]


def test_a_full_flush_loops_at_once_and_the_last_one_waits(scene: Scene, way: Way) -> None:
    scene.fill(SCHD, *"abcdef")
    flush = way.flush()
    assert flush.step() == 0
    assert flush.step() == 3
    assert scene.schd.ids() == [1, 2, 3, 4, 5, 6]


def test_one_flights_refused_state_holds_up_no_other_flight(scene: Scene, way: Way) -> None:
    scene.fill(SCHD, *"abcdef")
    scene.schd.refused = {b'"b"'}
    run(way.flush(), scene)
    assert sorted(scene.schd.ids()) == [1, 3, 4, 5, 6]
    assert scene.states()[2] is DEAD


@pytest.mark.parametrize("target", [MSG, SCHD])
def test_an_answer_that_never_came_repeats_nothing(
    scene: Scene, once: ExactlyOnce, target: Target
) -> None:
    scene.fill(target, *"abcdef")
    producer, topic, step = (
        (once.on_msg, scene.msg, once.dispatch())
        if target is MSG
        else (once.on_schd, scene.schd, once.flush())
    )

    def lose_the_answer() -> None:
        producer.after_commit = lambda: None
        raise Unavailable(Dependency.BROKER, "no answer")

    producer.after_commit = lose_the_answer
    with pytest.raises(Unavailable):
        step.step()
    run(step, scene)
    assert topic.ids() == [1, 2, 3, 4, 5, 6]
    assert producer.begun == 2
    assert set(scene.states().values()) == {SENT}


def test_who_takes_the_lead_while_we_begin_is_not_published_over(
    scene: Scene, once: ExactlyOnce
) -> None:
    scene.fill(MSG, *"abc")

    def overtaken() -> None:
        lead(scene.store, "the next")

    once.on_msg.on_begin = overtaken
    with pytest.raises(Fenced):
        once.dispatch().step()
    assert scene.msg.records == []


def test_shut_out_while_we_still_lead_begins_anew_and_charges_nobody(
    scene: Scene, once: ExactlyOnce
) -> None:
    scene.fill(MSG, *"abc")
    dispatch = once.dispatch()
    dispatch.step()
    scene.fill(MSG, *"def")
    once.on_msg.shut_out = True
    with pytest.raises(Unavailable):
        dispatch.step()
    run(dispatch, scene)
    assert scene.msg.ids() == [1, 2, 3, 4, 5, 6]


def test_shut_out_by_the_next_leader_steps_down(scene: Scene, once: ExactlyOnce) -> None:
    scene.fill(MSG, *"abc")
    dispatch = once.dispatch()
    dispatch.step()
    scene.fill(MSG, *"def")
    lead(scene.store, "the next")
    once.on_msg.shut_out = True
    with pytest.raises(Fenced):
        dispatch.step()
    assert scene.msg.ids() == [1, 2, 3]


def test_a_position_that_is_not_ours_stops_before_anything_is_sent(
    scene: Scene, once: ExactlyOnce
) -> None:
    scene.fill(MSG, *"abc")
    once.on_msg.committed = Position(store_id="another", generation=1, event_id=EventId(1), nonce=1)
    with pytest.raises(DeliveryStopped, match="stands still"):
        once.dispatch().step()
    assert scene.msg.records == []


def test_an_idle_target_commits_its_position_again_after_a_day(
    scene: Scene, once: ExactlyOnce
) -> None:
    scene.fill(MSG, *"abc")
    dispatch = once.dispatch()
    run(dispatch, scene, turns=3)
    published, once.on_msg.committed = once.on_msg.committed, None
    dispatch.step()
    assert once.on_msg.committed is None
    scene.clock.move(timedelta(days=1))
    dispatch.step()
    assert once.on_msg.committed == published
    assert scene.msg.ids() == [1, 2, 3]


def test_a_line_that_stays_idle_over_restarts_keeps_its_position_too(
    scene: Scene, once: ExactlyOnce
) -> None:
    scene.fill(MSG, *"abc")
    scene.fill(SCHD, *"abc")
    run(once.dispatch(), scene, turns=3)
    run(once.flush(), scene, turns=3)
    for producer, step in ((once.on_msg, once.dispatch()), (once.on_schd, once.flush())):
        on_begin = producer.committed
        producer.tried.clear()
        step.step()
        step.step()
        assert (producer.committed, producer.tried) == (on_begin, [0])


def test_a_store_from_before_a_flush_stops_it_until_its_generation_is_raised(
    scene: Scene, once: ExactlyOnce
) -> None:
    scene.fill(SCHD, *"abc")
    scene.schd.down = True
    flush = once.flush()
    with pytest.raises(Unavailable):
        flush.step()
    scene.schd.down = False
    known = scene.store.positions.known(SCHD, EventId(3))
    assert known is not None
    # Its claim was made after the backup: here nothing of it is known.
    once.on_schd.committed = Position(
        store_id=scene.store.leader.info().store_id,
        generation=1,
        event_id=EventId(3),
        nonce=known.nonce,
        flush_id="another",
    )
    with pytest.raises(DeliveryStopped, match="new-generation"):
        flush.step()
    assert scene.schd.records == []


def test_a_state_that_was_refused_before_spoils_no_other_flights_flush(
    scene: Scene, once: ExactlyOnce
) -> None:
    scene.fill(SCHD, *"abc")
    scene.schd.refused = {b'"b"'}
    flush = once.flush()
    while not any(entry.attempts for entry in _waiting(scene)):
        flush.step()
    assert once.on_schd.tried == [3, 1, 1]
    scene.fill(SCHD, *"defg", flid=lambda n: f"G{n}")
    scene.clock.move(timedelta(seconds=1))
    once.on_schd.tried.clear()
    run(flush, scene)
    assert scene.states()[2] is DEAD
    assert once.on_schd.tried == [1, 4, 1]


def _waiting(scene: Scene) -> list[OutboxEntry]:
    return list(scene.store.outbox.pending(SCHD, limit=9, bytes_max=1 << 20))
