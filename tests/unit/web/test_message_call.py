"""``GET /messages/{id}`` and the story it tells."""

from typing import Any

import pytest
from web_world import MemoryReads, at, client, event, message, pending

from msgexchange.flight.events import EventType, Target
from msgexchange.ids import EventId, Flid, MailboxId
from msgexchange.lifecycle.gap import Gap, GapDecision
from msgexchange.lifecycle.states import ErrorClass, EventState, MessageState
from msgexchange.ports import Act, AttemptView, ChangeView, MessageView


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
            {"at": "2026-09-03T10:30:01.000Z", "what": "enqueued from mailbox row 17"},
            {
                "at": "2026-09-03T10:30:01.000Z",
                "what": "trace 0af7651916cd43dd8448eb211c80319c",
            },
            {"at": "2026-09-03T10:30:02.000Z", "what": "first attempt began"},
            {"at": "2026-09-03T10:30:02.000Z", "what": "identity AODB|FLOP|GTDT|000123"},
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
    assert [line["what"] for line in value["story"]] == ["enqueued from mailbox row 18"]


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
    assert story(view)[4:] == [
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
    assert story(view)[4:] == [
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
    assert len(lines) == 8


def test_a_story_tells_the_gap_what_changed_what_people_did_and_where_its_trace_is() -> None:
    view = message(
        text_bytes=812,
        gaps=(
            Gap(lo=15, hi=16, first_seen=at(1.5)),
            Gap(
                lo=12,
                hi=12,
                first_seen=at(0),
                decision=GapDecision.FILLED,
                decided_at=at(0.25),
                why="it came",
            ),
        ),
        changes=(
            ChangeView(
                flid=Flid("900123"),
                version=5,
                message_id=MailboxId(17),
                at=at(3),
                changes=[("STAT", None, "BRD"), ("STND", "A1", None)],
            ),
        ),
        failures=(
            AttemptView(round=1, attempt=1, at=at(2.5), error_class=ErrorClass.INFRA, error="x"),
        ),
        acts=(
            Act(
                at=at(2.2),
                by="jl",
                act="replay",
                subject="order 5f",
                reason="gate is known now",
                outcome="done",
                outcomes={MailboxId(17): "DEAD -> SUCCEEDED", MailboxId(9): "refused"},
            ),
        ),
        archived_at=at(9),
    )
    told = client(reads=MemoryReads(views=[view]), jaeger_url="http://jaeger:16686/")
    lines = [line["what"] for line in told.get("/messages/17").get_json()["story"]]
    trace = "0af7651916cd43dd8448eb211c80319c"
    for line in (
        "id 12 below it, missing in the mailbox for 0.250 s: FILLED (it came)",
        "ids 15 to 16 below it missing in the mailbox: it waits behind this gap",
        "enqueued from mailbox row 17, 812 bytes",
        f"trace {trace}: http://jaeger:16686/trace/{trace}",
        "replay by jl: gate is known now: done: DEAD -> SUCCEEDED",
        "attempt 1 after 1 replays failed: INFRA: x",
        "flight 900123 version 5: STAT - -> BRD, STND A1 -> -",
        "moved to the archive",
    ):
        assert line in lines
    assert lines[-1] == "moved to the archive"


def test_the_trace_of_a_replay_stands_beside_the_one_the_message_came_with() -> None:
    replayed = "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"
    view = message(events=(event(40, traceparent=replayed), event(41, traceparent=replayed)))
    traces = [line for line in story(view) if line.startswith("trace")]
    assert traces == [
        "trace 0af7651916cd43dd8448eb211c80319c",
        "trace of its replay 4bf92f3577b34da6a3ce929d0e0e4736",
    ]


def test_a_long_change_is_cut_and_says_how_much_is_left_out() -> None:
    change = ChangeView(
        flid=Flid("1"),
        version=1,
        message_id=MailboxId(17),
        at=at(3),
        changes=[(f"N{n:02}", None, "x" * 100) for n in range(30)],
    )
    [line] = [line for line in story(message(changes=(change,))) if "version 1" in line]
    assert line.endswith(f"N11 - -> {'x' * 60}... and 18 more fields")


def test_a_row_that_was_gone_when_it_was_marked_is_told_so() -> None:
    assert story(message(mark_error="row-gone"))[-1] == (
        "marked as processed in the mailbox (row-gone)"
    )
