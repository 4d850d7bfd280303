"""Lease, fence, standbys and the open-attempt mark, on each kind of own store."""

from datetime import timedelta

import pytest
from sqlalchemy import text
from store_builders import append, event, later, lead, receive, result

from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.ids import EventId, Fence, MailboxId
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import Batch, EventFailure, Fenced, Unavailable
from msgexchange.store.engine import LEASE_WAITS, open_engine
from msgexchange.store.sql_store import SqlStore

FOREVER = timedelta(hours=1)
AT_ONCE = timedelta(0)


def test_a_running_lease_is_its_owners_alone(store: SqlStore) -> None:
    assert store.leader.take_lease("a", FOREVER) == 1
    assert store.leader.take_lease("b", FOREVER) is None
    assert store.leader.renew_lease("a", FOREVER)
    assert not store.leader.renew_lease("b", FOREVER)
    seen = store.leader.look()
    assert (seen.owner, seen.fence) == ("a", 1)
    assert seen.until is not None
    assert timedelta(minutes=59) < seen.until - seen.now <= FOREVER


def test_an_expired_lease_goes_to_the_next_with_a_higher_fence(store: SqlStore) -> None:
    assert store.leader.take_lease("a", AT_ONCE) == 1
    assert store.leader.look().owner is None
    assert store.leader.take_lease("b", FOREVER) == 2
    assert not store.leader.renew_lease("a", FOREVER)
    assert store.leader.look().owner == "b"


def test_a_lease_given_back_is_free_at_once_but_only_its_owner_can_give_it(
    store: SqlStore,
) -> None:
    store.leader.take_lease("a", FOREVER)
    store.leader.give_back("b")
    assert store.leader.take_lease("b", FOREVER) is None
    store.leader.give_back("a")
    assert store.leader.take_lease("b", FOREVER) == 2


def test_standbys_are_listed_until_they_leave(store: SqlStore) -> None:
    store.leader.stand_by("b", able=True)
    store.leader.stand_by("c", able=True)
    store.leader.stand_by("b", able=False)
    assert [(one.owner, one.able) for one in store.leader.look().standbys] == [
        ("b", False),
        ("c", True),
    ]
    store.leader.leave("c")
    assert [one.owner for one in store.leader.look().standbys] == ["b"]


@pytest.mark.postgres
def test_a_renewal_never_waits_for_the_transaction_of_the_pump(postgres_database: str) -> None:
    with_lease = _store(postgres_database)
    fence = with_lease.leader.take_lease("a", FOREVER)
    assert fence is not None
    with with_lease.pump.transaction(fence):
        assert with_lease.leader.renew_lease("a", FOREVER)
    with_lease.close()


@pytest.mark.postgres
def test_taking_over_ends_what_the_owner_before_left_in_a_transaction(
    postgres_database: str,
) -> None:
    stale, fresh = _store(postgres_database, "a"), _store(postgres_database, "b")
    fence = stale.leader.take_lease("a", AT_ONCE)
    assert fence is not None
    left = stale.pump.transaction(fence)
    left.__enter__()
    assert fresh.leader.take_lease("b", FOREVER) == fence + 1
    with pytest.raises(Unavailable):
        left.__exit__(None, None, None)
    with pytest.raises(Fenced), stale.pump.transaction(fence):
        pass
    stale.close()
    fresh.close()


@pytest.mark.postgres
def test_who_merely_gave_the_lease_back_keeps_its_sessions(postgres_database: str) -> None:
    before, after = _store(postgres_database, "a"), _store(postgres_database, "b")
    before.leader.take_lease("a", FOREVER)
    before.leader.give_back("a")
    with before.engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        assert after.leader.take_lease("b", FOREVER) == 2
        connection.execute(text("SELECT 1"))
    before.close()
    after.close()


def _store(dsn: str, owner: str = "a") -> SqlStore:
    return SqlStore(
        open_engine(dsn, owner=owner),
        default_catalogue(),
        nonce=lambda: 1,
        lease_engine=open_engine(dsn, waits=LEASE_WAITS, connections_max=2, owner=owner),
    )


def test_an_attempt_left_open_is_found_and_ends_with_its_commit(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    assert store.pump.found_attempt() is None
    store.pump.open_attempt(fence, MailboxId(1), now=later(1))
    found = store.pump.found_attempt()
    assert found is not None
    assert (found.message_id, found.fence, found.crashes) == (1, fence, 0)
    with store.pump.transaction(fence) as transaction:
        crash = result(
            1,
            MessageState.FAILED,
            error_class=ErrorClass.CRASH,
            last_cause=ErrorClass.CRASH,
            attempts=1,
            next_attempt_at=later(5),
        )
        transaction.commit_batch(
            Batch(messages=[crash], closes_attempt=True), now=later(2), codec_version="1"
        )
    assert store.pump.found_attempt() is None
    store.pump.open_attempt(fence, MailboxId(1), now=later(6))
    again = store.pump.found_attempt()
    assert again is not None
    assert again.crashes == 1
    store.pump.close_attempt(fence)
    assert store.pump.found_attempt() is None


def test_an_overtaken_leader_cannot_open_an_attempt(store: SqlStore) -> None:
    stale = lead(store)
    lead(store, "b")
    with pytest.raises(Fenced):
        store.pump.open_attempt(Fence(stale), MailboxId(1), now=later(1))


def test_only_what_backs_off_is_shifted(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1, 2)
    failed = result(
        1,
        MessageState.FAILED,
        error_class=ErrorClass.INFRA,
        last_cause=ErrorClass.INFRA,
        attempts=1,
        next_attempt_at=later(30),
    )
    with store.pump.transaction(fence) as transaction:
        transaction.commit_batch(Batch(messages=[failed]), now=later(2), codec_version="1")
    append(store, fence, event(), event("2"))
    store.schd.charge(
        fence,
        EventFailure(EventId(1), attempts=1, next_attempt_at=later(60), error="too large"),
        now=later(3),
    )
    assert store.leader.shift_deadlines(fence, timedelta(minutes=-15)) == 2
    [head, second] = store.pump.heads(2)
    assert head.next_attempt_at == later(30 - 900)
    assert head.processing_started_at == later(-900)
    assert second.next_attempt_at is None
    for at, waiting in ((60 - 901, 0), (60 - 900, 1)):
        due = store.schd.begin_flush(fence, flush_id="f", limit=9, bytes_max=1 << 20, now=later(at))
        assert len([entry for entry in due.winners if entry.event_id == 1]) == waiting
    lead(store, "b")
    with pytest.raises(Fenced):
        store.leader.shift_deadlines(fence, timedelta(minutes=15))
