"""Requests: registered in one commit with their event, closed once, one open of a kind."""

from dataclasses import replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select, update
from store_builders import T0, Lost, later, lead, receive

from msgexchange.flight.events import EventType, Target
from msgexchange.ids import Fence, RequestId
from msgexchange.lifecycle.request import (
    PlanWanted,
    ReferenceWanted,
    Request,
    RequestState,
    Wanted,
)
from msgexchange.lifecycle.states import EventState
from msgexchange.pipeline.asking import AskingRules, NotAskable, Order, ask, register
from msgexchange.ports import Fenced, MessageFault
from msgexchange.ports.requests import OutboundEntry
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import operation_audit, pipeline_lock

DAY = date(2026, 9, 3)
PLAN = PlanWanted(DAY, DAY + timedelta(days=1))
RULES = AskingRules(sender="MSGX", zone=ZoneInfo("Asia/Shanghai"), reference_types={"ARPT"})


def asked(store: SqlStore, id_: str = "r1", wanted: Wanted = PLAN, after_s: float = 0) -> Request:
    order = Order(request_id=RequestId(id_), by="jl", reason="lost", at=later(after_s))
    return ask(store.requests, wanted, order, RULES)


def known(store: SqlStore) -> dict[str, Request]:
    return {one.request_id: one for one in store.requests.recent(every=True, limit=99)}


def waiting(store: SqlStore) -> OutboundEntry:
    entry = store.outbound.next()
    assert entry is not None
    return entry


def test_a_request_its_event_and_its_audit_row_are_one_commit(store: SqlStore) -> None:
    request = asked(store)
    assert known(store) == {"r1": request}
    entry = waiting(store)
    assert (entry.event_id, entry.request, entry.attempts) == (request.event_id, request, 0)
    assert "<SEQN>000001</SEQN><DTTM>20260903180000</DTTM>" in entry.text
    [fact] = store.evidence.facts().events
    assert (fact.target, fact.type) == (Target.MAILBOX_OUT, EventType.REQUEST)
    with store.engine.connect() as connection:
        row = connection.execute(select(operation_audit)).one()
    assert (row.actor, row.act, row.subject, row.reason) == ("jl", "request", "request r1", "lost")


def test_a_commit_that_does_not_happen_leaves_nothing(store: SqlStore) -> None:
    order = Order(request_id=RequestId("r1"), by="jl", reason=None, at=T0)

    def lost() -> None:
        with store.requests.transaction() as transaction:
            register(transaction, PLAN, order, RULES)
            raise Lost

    with pytest.raises(Lost):
        lost()
    assert not known(store)
    assert store.outbound.next() is None
    assert asked(store).seqn == "000001"


def test_a_newer_request_of_the_kind_expires_the_older_in_its_commit(store: SqlStore) -> None:
    asked(store, "r1")
    asked(store, "r2", ReferenceWanted("ARPT"))
    newer = asked(store, "r3", after_s=60)
    found = known(store)
    assert found["r1"].state is RequestState.EXPIRED
    assert found["r1"].error == "replaced by request r3"
    assert found["r1"].finished_at == later(60)
    open_ = store.requests.recent(every=False, limit=9)
    assert [one.request_id for one in open_] == ["r3", "r2"]
    assert newer.seqn == "000003"


def test_the_sequence_number_wraps_after_six_digits(store: SqlStore) -> None:
    with store.engine.begin() as connection:
        connection.execute(update(pipeline_lock).values(next_seqn=999_999))
    assert [asked(store, id_).seqn for id_ in ("r1", "r2")] == ["999999", "000001"]


def test_what_cannot_be_asked_is_refused_and_leaves_nothing(store: SqlStore) -> None:
    with pytest.raises(NotAskable, match="there are ARPT"):
        asked(store, wanted=ReferenceWanted("NOPE"))
    shadow = replace(RULES, allowed=False)
    order = Order(request_id=RequestId("r1"), by="jl", reason=None, at=T0)
    with pytest.raises(NotAskable, match="shadow"):
        ask(store.requests, PLAN, order, shadow)
    assert not known(store)


def begun(store: SqlStore, fence: Fence, *, after: int = 3) -> OutboundEntry:
    assert store.outbound.begin(fence, waiting(store), after=after, now=later(1))
    return waiting(store)


def test_sending_is_said_before_the_insert_and_sent_after_it(store: SqlStore) -> None:
    fence = lead(store)
    asked(store)
    entry = begun(store, fence)
    request = entry.request
    assert (request.state, request.send_started_at) == (RequestState.SENDING, later(1))
    assert (request.outbound_after, request.sends) == (3, 1)
    store.outbound.sent(fence, entry, 17, now=later(2))
    request = known(store)["r1"]
    assert (request.state, request.sent_at, request.outbound_id) == (
        RequestState.SENT,
        later(2),
        17,
    )
    assert store.outbound.next() is None


def test_another_try_keeps_what_the_first_remembered(store: SqlStore) -> None:
    fence = lead(store)
    asked(store)
    entry = begun(store, fence)
    assert store.outbound.begin(fence, entry, after=9, now=later(50))
    request = waiting(store).request
    assert (request.outbound_after, request.send_started_at, request.sends) == (3, later(1), 2)
    store.outbound.sent(fence, entry, 17, now=later(51))
    [(often, text)] = store.outbound.sent_often(since=T0)
    assert (often.request_id, text) == ("r1", entry.text)


def test_a_request_closed_meanwhile_is_not_begun_and_its_event_cancelled(store: SqlStore) -> None:
    fence = lead(store)
    asked(store, "r1")
    entry = waiting(store)
    asked(store, "r2", after_s=1)
    assert not store.outbound.begin(fence, entry, after=3, now=later(2))
    store.outbound.cancel(fence, entry, "replaced")
    assert waiting(store).request.request_id == "r2"
    states = {fact.event_id: fact.state for fact in store.evidence.facts().events}
    assert states[entry.event_id] is EventState.CANCELLED


def test_an_answer_before_our_own_word_keeps_the_request_done(store: SqlStore) -> None:
    fence = lead(store)
    asked(store)
    entry = begun(store, fence)
    with store.requests.leader_transaction(fence) as transaction:
        open_ = transaction.open_requests()["plan"]
        transaction.close(open_.closed(RequestState.DONE, None, now=later(2)))
    store.outbound.sent(fence, entry, 17, now=later(3))
    request = known(store)["r1"]
    assert (request.state, request.outbound_id) == (RequestState.DONE, 17)


def test_an_event_that_dies_takes_its_request_with_it(store: SqlStore) -> None:
    fence = lead(store)
    asked(store)
    entry = begun(store, fence)
    store.outbound.charge(
        fence, entry, "no column", next_attempt_at=later(9), closes=False, now=later(2)
    )
    assert (waiting(store).attempts, waiting(store).next_attempt_at) == (1, later(9))
    store.outbound.charge(
        fence, waiting(store), "no column", next_attempt_at=None, closes=True, now=later(10)
    )
    request = known(store)["r1"]
    assert (request.state, request.error) == (RequestState.FAILED, "no column")
    assert store.outbound.next() is None


def test_a_closed_request_is_not_closed_again(store: SqlStore) -> None:
    request = asked(store)
    with store.requests.transaction() as transaction:
        transaction.close(request.closed(RequestState.EXPIRED, "late", now=later(1)))
    with pytest.raises(MessageFault, match="closed"), store.requests.transaction() as transaction:
        transaction.close(request.closed(RequestState.DONE, None, now=later(2)))
    assert known(store)["r1"].state is RequestState.EXPIRED


def test_who_lost_the_lead_sends_and_closes_nothing(store: SqlStore) -> None:
    old = lead(store)
    asked(store)
    lead(store, "other")
    with pytest.raises(Fenced):
        store.outbound.begin(old, waiting(store), after=0, now=T0)
    with pytest.raises(Fenced), store.requests.leader_transaction(old):
        pass
    assert waiting(store).request.state is RequestState.REGISTERED


def test_it_is_known_since_when_the_oldest_message_waits_and_who_asked(store: SqlStore) -> None:
    asked(store)
    with store.requests.transaction() as transaction:
        assert transaction.oldest_waiting_at() is None
        assert transaction.kinds_by("jl") == {"plan"}
        assert transaction.kinds_by("nobody") == frozenset()
    receive(store, 1, at=later(5))
    receive(store, 2, at=later(6))
    with store.requests.transaction() as transaction:
        assert transaction.oldest_waiting_at() == later(5)
