"""Records the broker will not take: who is charged, what goes on, and what may be sent again."""

from pathlib import Path

import pytest

from msgexchange.clock import SystemClock
from msgexchange.flight.events import Target
from msgexchange.lifecycle.states import EventState
from msgexchange.pipeline.redeliver import redeliver
from servers.broker import BrokerServer
from servers.publishing import drain, id_of, new_world, turn

pytestmark = pytest.mark.apache_kafka

LIMIT_BYTES = 5_000
OVER = b'{"x":"' + b"x" * LIMIT_BYTES + b'"}'
MSG, SCHD = Target.MSG, Target.SCHD


@pytest.mark.parametrize("place", [0, 3, 6], ids=["first", "middle", "last"])
def test_a_record_over_the_topics_limit_dies_alone_and_before_its_successors_leave(
    tmp_path: Path, apache_kafka: BrokerServer, place: int
) -> None:
    world = new_world(tmp_path, apache_kafka.bootstrap)
    world.create_topics()
    world.limit_records(LIMIT_BYTES)
    world.append(place, flights=7)
    world.append(1, flights=7, payload=OVER)
    world.append(20 - place, flights=7)
    drain(world.line())
    assert world.states(MSG) == {EventState.SENT: 20, EventState.DEAD: 1}
    [dead] = [fact for fact in world.events(MSG) if fact.state is EventState.DEAD]
    assert dead.event_id == 2 * place + 1
    assert "MSG_SIZE_TOO_LARGE" in (dead.error or "")
    seen = world.ids(MSG)
    assert sorted(seen) == [n for n in range(1, 43, 2) if n != dead.event_id]
    after = {
        record.header("prev-dead")
        for record in world.records(MSG)
        if record.key == str(dead.flid).encode()
        and int((record.header("event-id") or "").partition("-")[2]) > dead.event_id
    }
    assert after == {"true"}
    # On schd the flight's next state stands in for the one that could not go.
    assert world.states(SCHD).get(EventState.DEAD, 0) == 0
    assert len(world.ids(SCHD)) == 7
    world.close()


@pytest.mark.parametrize("place", [0, 3, 6], ids=["first", "middle", "last"])
def test_one_flights_refused_state_holds_up_no_other_flight(
    tmp_path: Path, apache_kafka: BrokerServer, place: int
) -> None:
    world = new_world(tmp_path, apache_kafka.bootstrap)
    world.create_topics()
    world.limit_records(LIMIT_BYTES)
    world.append(place, flights=7)
    world.append(1, flights=7, payload=OVER)
    world.append(6 - place, flights=7)
    line = world.line()
    flush = line.flush()
    turn(flush)
    for _ in range(8):
        flush.step()
    assert world.states(SCHD)[EventState.SENT] == 6
    [held] = [fact for fact in world.events(SCHD) if fact.state is not EventState.SENT]
    assert str(held.flid) == f"F{place}"
    drain(line)
    assert world.states(SCHD) == {EventState.SENT: 6, EventState.DEAD: 1}
    world.append(7, flights=7)
    drain(world.line())
    healed = 2 * (7 + place + 1)
    assert world.ids(SCHD).count(healed) == 1, "a dead state is healed by the flight's next one"
    world.close()


def test_what_died_goes_out_again_as_a_new_event_once_the_topic_takes_it(
    tmp_path: Path, apache_kafka: BrokerServer
) -> None:
    world = new_world(tmp_path, apache_kafka.bootstrap)
    world.create_topics()
    world.limit_records(LIMIT_BYTES)
    world.append(1, flights=7, payload=OVER)
    world.append(2, flights=7)
    drain(world.line())
    dead = world.store.redelivery.dead_events(limit=9)
    assert sorted(event.event_id for event in dead) == [1, 2]
    world.limit_records(2 * LIMIT_BYTES)
    for event in dead:
        redeliver(
            world.store.redelivery,
            event.event_id,
            by="jl",
            reason="limit raised",
            timezone="UTC",
            now=SystemClock().now(),
        )
    drain(world.line())
    again = {
        target: [record for record in world.records(target) if record.header("redelivery-of")]
        for target in (MSG, SCHD)
    }
    assert [record.value for record in again[MSG]] == [OVER]
    assert [record.header("redelivery-of") for record in again[MSG]] == ["1-1"]
    # Its flight is not in this store: on schd the state of today is that it is gone.
    assert [(r.value, r.header("event-type")) for r in again[SCHD]] == [(None, "TOMBSTONE")]
    assert sorted(world.ids(MSG)) == [3, 5, id_of(again[MSG][0])]
    assert world.store.redelivery.dead_events(limit=9) == []
    acts = world.store.audit.acts(act="redeliver", limit=9)
    assert {(act.subject, act.reason) for act in acts} == {
        ("event 1", "limit raised"),
        ("event 2", "limit raised"),
    }
    world.close()
