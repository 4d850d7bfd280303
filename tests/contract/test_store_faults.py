"""What a caller sees when the database fails it, and that two sessions wait for each other."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, text
from store_builders import T0, append, commit, event, flight, lead, new, receive, result, scan

from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.states import MessageState
from msgexchange.lifecycle.watermark import MailboxRow
from msgexchange.ports import Batch, Fenced, MessageFact, Unavailable
from msgexchange.store import evidence
from msgexchange.store.engine import Waits, open_engine, writing
from msgexchange.store.schema import upgrade
from msgexchange.store.sessions import Sessions
from msgexchange.store.sql_store import SqlStore
from servers.postgres import PostgresServer

SHORT = Waits(
    lock=timedelta(milliseconds=200),
    statement=timedelta(milliseconds=400),
    idle_in_transaction=timedelta(milliseconds=400),
    pool=timedelta(milliseconds=200),
)


@contextmanager
def opened(url: str, *, connections_max: int = 10) -> Iterator[SqlStore]:
    engine = open_engine(url, waits=SHORT, connections_max=connections_max)
    store = SqlStore(engine, default_catalogue(), nonce=count(1).__next__)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def impatient(postgres_database: str) -> Iterator[SqlStore]:
    with opened(postgres_database) as store:
        yield store


def in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread


def sessions_of(server: PostgresServer, store: SqlStore, act: str) -> None:
    name = store.engine.url.database
    server.execute(f"SELECT {act}(pid) FROM pg_stat_activity WHERE datname = '{name}'")


def commit_after(
    sabotage: Callable[[], object], store: SqlStore, fence: Fence, batch: Batch
) -> None:
    """A pump transaction that meets with something between its last statement and its commit."""
    with store.pump.transaction(fence) as transaction:
        transaction.commit_batch(batch, now=T0, codec_version="1")
        sabotage()


@pytest.mark.postgres
def test_a_server_that_is_not_there_is_unavailable() -> None:
    with opened("postgresql://nobody@127.0.0.1:1/none") as store, pytest.raises(Unavailable):
        store.reads.probe()


@pytest.mark.postgres
def test_a_session_that_was_ended_is_unavailable_and_the_next_call_works(
    postgres_server: PostgresServer, impatient: SqlStore
) -> None:
    impatient.reads.probe()
    sessions_of(postgres_server, impatient, "pg_terminate_backend")
    with pytest.raises(Unavailable):
        impatient.reads.probe()
    impatient.reads.probe()


@pytest.mark.postgres
def test_a_connection_lost_at_commit_is_unavailable_and_leaves_nothing_half_done(
    postgres_server: PostgresServer, impatient: SqlStore
) -> None:
    fence = lead(impatient)
    receive(impatient, 1)
    cut = partial(sessions_of, postgres_server, impatient, "pg_terminate_backend")
    with pytest.raises(Unavailable):
        commit_after(cut, impatient, fence, Batch(messages=[result(1)], events=[event("1")]))
    facts = impatient.evidence.facts()
    assert (facts.messages[0].state, facts.events) == (MessageState.PENDING, [])


@pytest.mark.postgres
def test_a_statement_that_takes_too_long_is_unavailable(impatient: SqlStore) -> None:
    with pytest.raises(Unavailable), Sessions(impatient.engine).look() as connection:
        connection.execute(text("SELECT pg_sleep(5)"))


@pytest.mark.postgres
def test_a_transaction_left_idle_is_ended_and_cannot_commit(impatient: SqlStore) -> None:
    fence = lead(impatient)
    receive(impatient, 1)
    pause = partial(threading.Event().wait, 0.8)
    with pytest.raises(Unavailable):
        commit_after(pause, impatient, fence, Batch(messages=[result(1)]))
    assert impatient.pump.heads(1)


@pytest.mark.postgres
def test_a_store_that_takes_long_to_read_is_read_to_its_end(
    impatient: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead(impatient)
    receive(impatient, 1)
    message_of = evidence._message

    def slowly(row: Any) -> MessageFact:
        threading.Event().wait(0.8)
        return message_of(row)

    monkeypatch.setattr(evidence, "_message", slowly)
    assert [fact.message_id for fact in impatient.evidence.facts().messages] == [1]


@pytest.mark.postgres
def test_an_export_waits_for_where_it_is_written(impatient: SqlStore) -> None:
    fence = lead(impatient)
    receive(impatient, 1)
    commit(impatient, fence, Batch(messages=[result(1)], flights=[new(flight("1", 1, {}))]))
    states = impatient.imports.states()
    assert next(iter(states)).flid == "1"
    threading.Event().wait(0.8)
    assert list(states) == []


@pytest.mark.postgres
def test_taking_the_lead_waits_for_the_leaders_transaction_but_not_for_ever(
    impatient: SqlStore,
) -> None:
    fence = lead(impatient)
    with impatient.pump.transaction(fence):
        with pytest.raises(Unavailable):
            lead(impatient, "standby")
        impatient.pump.check_fence(fence)
    assert lead(impatient, "standby") == fence + 1


@pytest.mark.postgres
def test_leader_transactions_do_not_wait_for_each_other(impatient: SqlStore) -> None:
    fence = lead(impatient)
    append(impatient, fence, event("1"))
    with impatient.pump.transaction(fence) as transaction:
        batch = Batch(messages=(), events=[event("1")])
        transaction.commit_batch(batch, now=T0, codec_version="1")
        flush = impatient.schd.begin_flush(fence, flush_id="f", limit=5, bytes_max=99, now=T0)
        with impatient.intake.transaction(fence) as intake:
            intake.apply(scan((1,), 1), now=T0)
    assert [entry.event_id for entry in flush.winners] == [1]


@pytest.mark.postgres
def test_two_appenders_take_turns_so_that_ids_follow_commits(postgres_store: SqlStore) -> None:
    fence = lead(postgres_store)
    receive(postgres_store, *range(1, 21))

    def work(ids: range) -> None:
        for id_ in ids:
            commit(postgres_store, fence, Batch(messages=[result(id_)], events=[event(str(id_))]))

    threads = [in_thread(lambda: work(range(1, 11))), in_thread(lambda: work(range(11, 21)))]
    for thread in threads:
        thread.join()
    assert [fact.event_id for fact in postgres_store.evidence.facts().events] == [*range(1, 21)]


@pytest.mark.postgres
def test_scan_and_entry_wait_for_each_other(postgres_store: SqlStore) -> None:
    def enqueue() -> None:
        with postgres_store.intake.transaction(None) as transaction:
            row = MailboxRow(MailboxId(1), 9)
            seen.append(transaction.enqueue(row, now=T0, traceparent="00-t"))

    seen: list[bool] = []
    with postgres_store.intake.transaction(None) as transaction:
        transaction.apply(scan((1,), 1), now=T0)
        entry = in_thread(enqueue)
        entry.join(0.2)
        assert entry.is_alive()
    entry.join()
    assert seen == [False]


@pytest.mark.postgres
def test_a_read_sees_one_moment(postgres_store: SqlStore) -> None:
    fence = lead(postgres_store)
    with Sessions(postgres_store.engine).read() as connection:
        before = connection.execute(text("SELECT count(*) FROM msg_event")).scalar_one()
        append(postgres_store, fence, event("1"))
        assert connection.execute(text("SELECT count(*) FROM msg_event")).scalar_one() == before


@pytest.mark.postgres
def test_a_pool_that_is_used_up_is_unavailable(postgres_database: str) -> None:
    with (
        opened(postgres_database, connections_max=1) as store,
        store.engine.connect(),
        pytest.raises(Unavailable),
    ):
        store.reads.probe()


@pytest.mark.postgres
def test_a_database_that_refuses_sessions_is_unavailable_until_it_does_not(
    postgres_server: PostgresServer, impatient: SqlStore
) -> None:
    name = impatient.engine.url.database
    postgres_server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    sessions_of(postgres_server, impatient, "pg_terminate_backend")
    for _ in range(2):
        with pytest.raises(Unavailable):
            impatient.reads.probe()
    postgres_server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    impatient.reads.probe()


def test_a_second_writer_of_a_file_waits_and_is_then_unavailable(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 's'}") as store:
        upgrade(store.engine, store_id="x", identity_rule="plain")
        with writing(store.engine).begin(), pytest.raises(Unavailable):
            lead(store)
        assert lead(store) == 1


def test_readers_of_a_file_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 's'}") as store:
        upgrade(store.engine, store_id="x", identity_rule="plain")
        fence = lead(store)
        with store.intake.transaction(fence) as transaction:
            transaction.apply(scan((1,), 1), now=T0)
            assert store.reads.counts().watermark == 0
        assert store.reads.counts().watermark == 1


def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 'no' / 'folder'}") as store, pytest.raises(Unavailable):
        store.reads.probe()


def test_a_file_is_as_durable_as_it_gets(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 's'}") as store, store.engine.connect() as connection:
        for pragma, expected in (("journal_mode", "wal"), ("synchronous", 2)):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one() == expected


def test_two_processes_on_one_file_fence_each_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's'}"
    with opened(url) as one, opened(url) as two:
        upgrade(one.engine, store_id="x", identity_rule="plain")
        old = lead(one)
        assert lead(two, "two") == Fence(old + 1)
        with pytest.raises(Fenced):
            append(one, old, event("1"))


@pytest.mark.postgres
def test_what_a_database_is_asked_to_wait_is_below_the_lease(postgres_database: str) -> None:
    assert make_url(postgres_database).database is not None
    engine = open_engine(postgres_database)
    with engine.connect() as connection:
        for setting in (
            "lock_timeout",
            "statement_timeout",
            "idle_in_transaction_session_timeout",
        ):
            shown = connection.execute(text(f"SHOW {setting}")).scalar_one()
            assert shown in ("3s", "4s")
        assert connection.execute(text("SHOW transaction_isolation")).scalar_one() == (
            "read committed"
        )
    engine.dispose()


@pytest.mark.parametrize("url", ["mysql://u@h/d", "oracle://u@h/d"])
def test_other_databases_are_refused_by_name(url: str) -> None:
    with pytest.raises(ValueError, match="postgresql://"):
        open_engine(url)
