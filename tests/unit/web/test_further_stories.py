"""What ``explain`` tells of a flight and of an event."""

from dataclasses import replace

from web_world import TRACEPARENT, at, event

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.past import PastFlight
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import EventId, Flid, MailboxId
from msgexchange.lifecycle.states import EventState
from msgexchange.ports import Act, ChangeView
from msgexchange.web.further_stories import event_story, flight_story

JAEGER = "http://jaeger:16686"
URL = f"{JAEGER}/trace/{TRACEPARENT.split('-')[1]}"
TOPICS = {Target.MSG: "msg", Target.SCHD: "schd"}
CHANGE = ChangeView(
    flid=Flid("900123"),
    version=5,
    message_id=MailboxId(17),
    at=at(3),
    changes=[("STAT", None, "BRD")],
)


def test_a_flight_is_told_version_by_version_with_traces_events_and_past_lives() -> None:
    last = FlightState(
        flid=Flid("900123"),
        operation_day=None,
        status=FlightStatus.DELETED,
        version=4,
        last_message_id=MailboxId(9),
        content={},
    )
    waiting = event(41, target=Target.SCHD, type=EventType.UPSERT, sent_at=None)
    told = flight_story(
        [CHANGE, replace(CHANGE, version=6, message_id=MailboxId(18), at=at(8))],
        [event(40), replace(waiting, state=EventState.PENDING)],
        [PastFlight(last, at(0))],
        TOPICS,
        traceparents={MailboxId(17): TRACEPARENT},
        jaeger_url=JAEGER,
    )
    assert [line.what for line in told] == [
        "operation day None written to history at version 4",
        f"version 5 by message 17 ({URL}): STAT - -> BRD",
        "event 40: NOTICE of flight 900123 for KAFKA:msg",
        "event 41: UPSERT of flight 900123 for KAFKA:schd",
        "event 40 is out: topic msg, partition 0, offset 4",
        "version 6 by message 18: STAT - -> BRD",
    ]


def test_an_event_is_told_with_its_cause_its_change_its_place_and_what_people_did() -> None:
    act = Act(
        at=at(9),
        by="jl",
        act="redeliver",
        subject="event 40",
        reason="consumer lost it",
        outcome="event 50",
        outcomes={},
    )
    sent = replace(event(40), traceparent=TRACEPARENT, redelivery_of=EventId(3))
    told = event_story(sent, CHANGE, [act], TOPICS, JAEGER)
    assert [line.what for line in told] == [
        f"caused by message 17, sent again in place of event 3, trace {URL}",
        "flight 900123 version 5: STAT - -> BRD",
        "event 40: NOTICE of flight 900123 for KAFKA:msg",
        "event 40 is out: topic msg, partition 0, offset 4",
        "redeliver by jl: consumer lost it: event 50",
    ]


def test_a_dead_event_says_why_and_a_waiting_one_when_it_is_due() -> None:
    dead = event(42, state=EventState.DEAD, error="too large", sent_at=None)
    assert "DEAD: too large" in event_story(dead, None, [], TOPICS)[-1].what
    due = event(
        43,
        state=EventState.PENDING,
        error="refused",
        attempts=2,
        sent_at=None,
        next_attempt_at=at(9),
    )
    assert event_story(due, None, [], TOPICS)[-1].what == "attempt 3 is due"
