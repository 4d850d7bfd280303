"""``GET /messages/{id}`` and the story it tells."""

from typing import Any

import pytest
from web_world import MemoryReads, at, client, event, message, pending

from msgexchange.flight.events import EventType, Target
from msgexchange.ids import EventId, Flid
from msgexchange.lifecycle.states import ErrorClass, EventState, MessageState
from msgexchange.ports import AttemptView, MessageView


def told(view: MessageView) -> Any:
    return client(reads=MemoryReads(views=[view])).get(f"/messages/{view.message_id}").get_json()


def story(view: MessageView) -> list[str]:
    return [line["what"] for line in told(view)["story"]]


def test_a_message_has_exactly_the_shape_of_the_contract() -> None:
    assert told(message()) == {
        "id": 17,
        "state": "SUCCEEDED",
        "errorClass": None,
        "error": None,
        "identity": "AODB|FLOP|GTDT|000123",
        "kind": "FLOP/GTDT",
        "attempts": 0,
        "flids": ["900123"],
        "unknown": ["XYZW"],
        "events": [
            {
                "eventId": 40,
                "target": "KAFKA:msg",
                "type": "NOTICE",
                "state": "SENT",
                "topic": "msg",
                "partition": 0,
                "offset": 4,
            }
        ],
        "marked": True,
        "receivedAt": "2026-09-03T10:30:01.000Z",
        "finishedAt": "2026-09-03T10:30:03.000Z",
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "story": [
            {"at": "2026-09-03T10:30:01.000Z", "what": "enqueued from the mailbox"},
            {"at": "2026-09-03T10:30:02.000Z", "what": "first attempt began"},
            {"at": "2026-09-03T10:30:03.000Z", "what": "SUCCEEDED; flights 900123"},
            {
                "at": "2026-09-03T10:30:03.000Z",
                "what": "event 40: NOTICE of flight 900123 for KAFKA:msg",
            },
            {
                "at": "2026-09-03T10:30:04.000Z",
                "what": "event 40 is out: topic msg, partition 0, offset 4",
            },
            {
                "at": "2026-09-03T10:30:05.000Z",
                "what": "marked as processed in the mailbox",
            },
        ],
    }


def test_a_message_nobody_looked_at_yet_has_nulls() -> None:
    value = told(pending())
    for name in ("errorClass", "error", "identity", "kind", "finishedAt", "traceId"):
        assert value[name] is None
    assert value["marked"] is False
    assert value["events"] == value["flids"] == value["unknown"] == []
    assert [line["what"] for line in value["story"]] == ["enqueued from the mailbox"]


@pytest.mark.parametrize("id_", ["99", "abc", "-1", "9223372036854775808", "9" * 5000, "%D9%A3"])
def test_an_unknown_message_is_a_404(id_: str) -> None:
    answer = client(reads=MemoryReads(views=[message()])).get(f"/messages/{id_}")
    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json"


def test_a_failed_head_says_when_it_is_tried_again() -> None:
    view = message(
        state=MessageState.FAILED,
        error_class=ErrorClass.UNSUPPORTED,
        attempts=2,
        finished_at=None,
        marked_at=None,
        next_attempt_at=at(9),
        events=(),
        failures=(
            AttemptView(attempt=1, at=at(2.5), error_class=ErrorClass.UNSUPPORTED, error="XX"),
            AttemptView(attempt=2, at=at(5), error_class=ErrorClass.INFRA, error="lost"),
        ),
    )
    assert story(view)[2:] == [
        "attempt 1 failed: UNSUPPORTED: XX",
        "attempt 2 failed: INFRA: lost",
        "attempt 3 is due",
    ]


def test_a_dead_message_says_why_and_that_its_mark_is_missing() -> None:
    view = message(
        state=MessageState.DEAD,
        error_class=ErrorClass.EXHAUSTED,
        last_cause=ErrorClass.UNSUPPORTED,
        error="type XX is unknown",
        note="supersedes:9",
        flids=(),
        events=(),
        marked_at=None,
        mark_error="mailbox read-only",
    )
    assert story(view)[2:] == [
        "DEAD(EXHAUSTED, last cause UNSUPPORTED): type XX is unknown [supersedes:9]",
        "the mark is not written yet: mailbox read-only",
    ]


def test_the_fate_of_each_event_is_told() -> None:
    schd = {"target": Target.SCHD, "type": EventType.UPSERT, "sent_at": None}
    superseded = {**schd, "state": EventState.SUPERSEDED, "superseded_by": EventId(50)}
    dead = {"state": EventState.DEAD, "error": "too large", "sent_at": None}
    waiting = {"state": EventState.PENDING, "error": "refused", "attempts": 2, "sent_at": None}
    view = message(events=(event(41, **superseded), event(42, **dead), event(43, **waiting)))
    lines = story(view)
    assert "event 41: UPSERT of flight 900123 for KAFKA:schd, superseded by event 50" in lines
    assert "event 42: NOTICE of flight 900123 for KAFKA:msg, DEAD: too large" in lines
    assert (
        "event 43: NOTICE of flight 900123 for KAFKA:msg, waiting after 2 failed attempts: refused"
        in lines
    )


def test_the_events_of_a_plan_are_counted_and_not_told_one_by_one() -> None:
    flids = tuple(Flid(f"F{n}") for n in range(30))
    events = tuple(event(n, sent_at=at(4 + n / 10)) for n in range(30))
    unsent = (event(30, target=Target.SCHD, type=EventType.UPSERT, sent_at=None),)
    lines = story(message(flids=flids, events=events + unsent))
    assert any(line.endswith("F19 and 10 more") for line in lines)
    assert "events: 30 NOTICE for KAFKA:msg, 1 UPSERT for KAFKA:schd" in lines
    assert "30 of 30 events for KAFKA:msg are out" in lines
    assert len(lines) == 6


def test_a_row_that_was_gone_when_it_was_marked_is_told_so() -> None:
    assert story(message(mark_error="row-gone"))[-1] == (
        "marked as processed in the mailbox (row-gone)"
    )
