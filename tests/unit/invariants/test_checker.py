"""The checker is checked: each planted break of a promise is found, a clean history is clean."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from factories import T0, plan, status
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.encode import encode
from msgexchange.codec.limits import Limits
from msgexchange.flight.events import EventType, Target, schd_value
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import EventId, Flid, Identity, MailboxId
from msgexchange.invariants.checker import violations
from msgexchange.invariants.observation import Observation, RecordFact, TopicFacts
from msgexchange.invariants.state_checks import unreadable_past
from msgexchange.lifecycle.states import EventState, MessageState
from msgexchange.lifecycle.watermark import Gap, GapDecision
from msgexchange.ports import ChangeFact, EventFact, Kept, MessageFact, StoreFacts

CATALOGUE = default_catalogue()
ZONE = ZoneInfo("Asia/Shanghai")
TEXTS = {1: plan("9001"), 2: status("9001", "BRD"), 4: status("9001", "BRD")}
CONTENT = {"FLNO": "CZ9001", "MVTP": "D", "SCTM": "03SEP261900"}


def message(id_: int, state: MessageState = MessageState.SUCCEEDED) -> MessageFact:
    seqn = {1: "000001"}.get(id_, "000002")
    return MessageFact(
        message_id=MailboxId(id_),
        state=state,
        error_class=None,
        error=None if state is MessageState.SUCCEEDED else "duplicate-of:2",
        note=None,
        identity=Identity(f"AODB|T|S|{seqn}") if state is MessageState.SUCCEEDED else None,
        business_key=("AODB", "T", "S", seqn),
        received_at=T0,
        finished_at=T0 + timedelta(seconds=id_),
        mark_intended=False,
        mark_confirmed=True,
    )


def event(id_: int, type_: EventType, message_id: int, version: int) -> EventFact:
    schd = type_ is not EventType.NOTICE
    superseded = schd and version == 1
    return EventFact(
        event_id=EventId(id_),
        target=Target.SCHD if schd else Target.MSG,
        type=type_,
        flid=Flid("9001"),
        message_id=MailboxId(message_id),
        state_version=version,
        state=EventState.SUPERSEDED if superseded else EventState.SENT,
        superseded_by=EventId(4) if superseded else None,
        error=None,
        sent_at=None if superseded else T0,
    )


FLIGHT = FlightState(
    flid=Flid("9001"),
    operation_day=date(2026, 9, 3),
    status=FlightStatus.ACTIVE,
    version=2,
    last_message_id=MailboxId(2),
    content={**CONTENT, "STAT": "BRD"},
)


def record(offset: int, event_id: int, value: bytes | None = b"{}") -> RecordFact:
    return RecordFact(partition=0, offset=offset, key="9001", event_id=f"1-{event_id}", value=value)


def clean() -> Observation:
    store = StoreFacts(
        began_after=0,
        watermark=4,
        messages=[message(1), message(2), message(4, MessageState.SKIPPED)],
        gaps=[Gap(lo=3, hi=3, first_seen=T0, decision=GapDecision.PERMANENT)],
        events=[
            event(1, EventType.NOTICE, 1, 1),
            event(2, EventType.UPSERT, 1, 1),
            event(3, EventType.NOTICE, 2, 2),
            event(4, EventType.UPSERT, 2, 2),
        ],
        changes=[
            ChangeFact(flid=Flid("9001"), version=1, message_id=MailboxId(1)),
            ChangeFact(flid=Flid("9001"), version=2, message_id=MailboxId(2)),
        ],
        flights=[FLIGHT],
    )
    return Observation(
        store=store,
        marks=dict.fromkeys(map(MailboxId, TEXTS), True),
        decoded={MailboxId(id_): decode(TEXTS[id_], CATALOGUE, Limits(), ZONE) for id_ in (1, 2)},
        topics=TopicFacts(
            generation=1,
            msg=[record(0, 1), record(1, 3)],
            schd=[record(0, 4, encode(schd_value(FLIGHT, "Asia/Shanghai")))],
            complete=True,
        ),
        drained=True,
    )


def found(seen: Observation) -> set[str]:
    return {name for name, broken in violations(seen).items() if broken}


def test_a_clean_history_breaks_nothing() -> None:
    assert violations(clean()) == {name: [] for name in violations(clean())}


def store(**changes: Any) -> Callable[[Observation], Observation]:
    return lambda seen: replace(seen, store=replace(seen.store, **changes))


def topics(**changes: Any) -> Callable[[Observation], Observation]:
    def change(seen: Observation) -> Observation:
        assert seen.topics is not None
        return replace(seen, topics=replace(seen.topics, **changes))

    return change


def marks(changes: Mapping[int, bool]) -> Callable[[Observation], Observation]:
    changed = {MailboxId(id_): marked for id_, marked in changes.items()}
    return lambda seen: replace(seen, marks={**seen.marks, **changed})


def facts() -> StoreFacts:
    return clean().store


PLANTED = {
    "a row that nobody took in": (marks({5: False}), "I1"),
    "a message twice in the inbox": (
        store(messages=[*facts().messages, message(2)], gaps=facts().gaps),
        "I1",
    ),
    "a message that ended after its successor": (
        store(
            messages=[
                replace(message(1), finished_at=T0 + timedelta(seconds=9)),
                *facts().messages[1:],
            ]
        ),
        "I2",
    ),
    "a message that ended while an older one waits": (
        store(
            messages=[
                replace(message(1), state=MessageState.PENDING, finished_at=None),
                *facts().messages[1:],
            ]
        ),
        "I2",
    ),
    "an event of a message that did not succeed": (
        store(events=[*facts().events, event(5, EventType.NOTICE, 4, 3)]),
        "I3",
    ),
    "a version without its events": (store(events=facts().events[:2]), "I3"),
    "a success that changed nothing": (store(changes=facts().changes[:1]), "I3"),
    "an end without a mark intent": (
        store(messages=[replace(message(1), mark_confirmed=False), *facts().messages[1:]]),
        "I3",
    ),
    "one identity that succeeded twice": (
        store(messages=[*facts().messages[:2], message(4)]),
        "I4",
    ),
    "records out of event order": (topics(msg=[record(0, 3), record(1, 1)]), "I5"),
    "a sent event that is on no topic": (topics(msg=[record(0, 1)]), "I6"),
    "an event that waits for no reason": (
        store(
            events=[
                *facts().events[:3],
                replace(facts().events[3], state=EventState.PENDING),
            ]
        ),
        "I6",
    ),
    "a mark on a message that waits": (
        store(
            messages=[
                *facts().messages[:2],
                replace(message(4), state=MessageState.PENDING, finished_at=None),
            ]
        ),
        "I7",
    ),
    "a terminal message without its mark": (marks({2: False}), "I7"),
    "a watermark past an unexplained id": (store(gaps=[]), "I10"),
    "a flight that is not the fold": (
        store(flights=[replace(FLIGHT, content=CONTENT)]),
        "I11",
    ),
    "a flight nobody announced": (
        store(flights=[FLIGHT, replace(FLIGHT, flid=Flid("9002"))]),
        "I11",
    ),
    "an older state as the last value of a key": (
        topics(schd=[record(0, 4, encode(schd_value(replace(FLIGHT, content=CONTENT), "x")))]),
        "I12",
    ),
    "a tombstone for a flight that is active": (topics(schd=[record(0, 4, None)]), "I12"),
    "a flight on no schd record": (topics(schd=[]), "I12"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_each_planted_break_is_found(planted: str) -> None:
    plant, invariant = PLANTED[planted]
    assert invariant in found(plant(clean()))


def test_a_request_that_no_message_caused_breaks_nothing() -> None:
    seen = clean()
    asked = replace(
        event(5, EventType.REQUEST, 0, 0),
        target=Target.MAILBOX_OUT,
        flid=None,
        state_version=None,
        state=EventState.CANCELLED,
        sent_at=None,
    )
    asking = store(events=[*seen.store.events, asked])(seen)
    assert violations(asking) == {name: [] for name in violations(asking)}


def test_a_repeat_with_the_same_event_id_is_no_break_of_the_order() -> None:
    repeated = topics(msg=[record(0, 1), record(1, 3), record(2, 1), record(3, 3)])
    assert "I5" not in found(repeated(clean()))


def exactly_once(seen: Observation) -> Observation:
    assert seen.topics is not None
    return replace(seen, topics=replace(seen.topics, exactly_once=True))


def test_with_exactly_once_a_repeat_is_a_break() -> None:
    assert "I5" not in found(exactly_once(clean()))
    repeated = topics(msg=[record(0, 1), record(1, 3), record(2, 1), record(3, 3)])
    assert "I5" in found(exactly_once(repeated(clean())))


def landed(offset: int, start: int = 0) -> Observation:
    """The first msg event is known to lie at this offset of partition 0."""
    first, *rest = clean().store.events
    seen = store(events=[replace(first, place=(0, offset)), *rest])(clean())
    assert seen.topics is not None
    starts = {Target.MSG: {0: start}}
    return replace(seen, topics=replace(seen.topics, starts=starts, complete=start == 0))


def test_a_sent_event_is_looked_for_where_it_landed() -> None:
    assert "I6" not in found(landed(0))
    assert "I6" in found(landed(1))


def test_what_the_broker_has_removed_is_not_missed() -> None:
    assert "I6" not in found(landed(3, start=5))


def test_an_event_sent_under_an_older_generation_is_found_all_the_same() -> None:
    seen = clean()
    assert seen.topics is not None
    later = replace(seen, topics=replace(seen.topics, generation=seen.topics.generation + 1))
    assert "I6" not in found(later)


def test_what_must_hold_in_the_end_is_not_asked_before_it() -> None:
    waiting = replace(clean(), drained=False)
    assert "I7" not in found(marks({2: False})(waiting))


def test_a_flight_whose_messages_the_owner_purged_is_left_out_not_called_broken() -> None:
    purged = replace(clean(), decoded={})
    assert "I11" not in found(purged)
    assert unreadable_past(purged) == {"9001"}
    assert unreadable_past(clean()) == set()


def test_a_flight_whose_newest_state_is_a_dead_event_is_explained_by_it() -> None:
    dead = replace(event(4, EventType.UPSERT, 2, 2), state=EventState.DEAD, sent_at=None)
    seen = topics(schd=[])(store(events=[*facts().events[:3], dead])(clean()))
    assert "I12" not in found(seen)


def test_a_swept_flight_is_missed_by_nobody() -> None:
    seen = store(flights=[], ended={Flid("9001"): 3})(clean())
    seen = replace(seen, topics=None)
    assert found(seen) == set()


def test_a_flight_that_vanished_without_a_sweep_is_found() -> None:
    assert "I11" in found(store(flights=[])(clean()))


def test_a_swept_flight_that_still_stands_is_found() -> None:
    assert "I11" in found(store(ended={Flid("9001"): 3})(clean()))


def test_a_new_life_goes_on_at_the_version_where_the_old_one_ended() -> None:
    seen = clean()
    changes = [seen.store.changes[0], replace(seen.store.changes[1], version=3)]
    content = {"STAT": "BRD"}
    reborn = replace(FLIGHT, version=3, operation_day=None, content=content)
    told = store(
        changes=changes,
        flights=[reborn],
        ended={Flid("9001"): 2},
        events=[
            replace(one, state_version=max(2 * (one.state_version or 0) - 1, 1))
            for one in seen.store.events
        ],
    )(seen)
    assert "I11" not in found(replace(told, topics=None))
    forgot = store(flights=[replace(reborn, version=2)])(told)
    assert "I11" in found(replace(forgot, topics=None))


def test_what_retention_took_is_missed_by_nobody_and_what_it_did_not_is() -> None:
    later_on = T0 + timedelta(days=1)
    seen = clean()
    swept_changes = store(changes=[], kept_since={Kept.CHANGES: later_on})(seen)
    assert found(swept_changes) == set()
    assert "I3" in found(store(changes=[], kept_since={Kept.CHANGES: T0})(seen))
    assert "I3" in found(store(changes=[])(seen))
    events = store(events=[], kept_since={Kept.SENT_EVENTS: later_on})(seen)
    assert "I3" not in found(events)
    assert "I3" in found(store(events=[])(seen))
    gaps = store(gaps=[], kept_since={Kept.GAPS: later_on})(seen)
    assert "I10" not in found(gaps)
    assert "I10" in found(store(gaps=[])(seen))
