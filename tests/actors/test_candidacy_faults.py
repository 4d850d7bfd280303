"""Leadership, time, probes and site check: each fault in each, over PostgreSQL (spec 6.1)."""

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text

from fakes.candidate import Candidate
from fakes.faults import Fault, hangs, raises
from msgexchange.actors import supervisor
from msgexchange.app import candidacy
from msgexchange.config import load
from msgexchange.lifecycle import breaker
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.supervision import RestartPolicy
from msgexchange.pipeline import database_time, probe
from msgexchange.ports import Dependency, Unavailable
from msgexchange.store.sql_store import SqlStore
from servers.waiting import sleep

pytestmark = pytest.mark.postgres
LEASE = timedelta(seconds=2)
ACTORS = [
    "leadership",
    "database-time",
    "probe-store",
    "probe-mailbox",
    "probe-broker",
    "site-check",
]
RESTARTS = 200
EVER = 1_000_000


@pytest.fixture
def candidate(
    postgres_store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Candidate]:
    """A short lease; back-offs, probes and watchdog to match."""
    logging.getLogger("pykka").setLevel(logging.CRITICAL)
    at_once = Backoff(timedelta(milliseconds=1), timedelta(milliseconds=4))
    monkeypatch.setattr(candidacy, "RestartPolicy", partial(RestartPolicy, backoff=at_once))
    monkeypatch.setattr(breaker, "PROBE_BACKOFF", at_once)
    monkeypatch.setattr(supervisor, "INSPECT_EVERY_S", 0.02)
    monkeypatch.setattr(probe, "WAITED_FOR_EVERY_S", 0.02)
    monkeypatch.setattr(database_time, "FOLLOW_EVERY_S", 0.02)
    loaded = load(None, {}, None, tmp_path)
    hasty = loaded.supervisor.model_copy(
        update={
            "lease": LEASE,
            "watchdog": timedelta(milliseconds=300),
            "max_restarts": 10_000,
        }
    )
    threads = threading.active_count()
    candidate = Candidate(loaded.model_copy(update={"supervisor": hasty}), postgres_store)
    yield candidate
    candidate.faults.arm(Fault(lambda _call: None, times=0))
    candidate.stop()
    assert threading.active_count() == threads
    assert postgres_store.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def strike(candidate: Candidate, actor: str, act: Callable[[str], None], times: int) -> None:
    """So many calls of this actor fail."""
    left = [times]
    struck = threading.Event()

    def count(call: str) -> None:
        if left[0] > 0:
            left[0] -= 1
            act(call)
        else:
            struck.set()

    candidate.faults.arm(Fault(candidate.only(actor, count), times=EVER))
    candidate.wait(struck.is_set, f"{actor} works again", 60)


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("failure", [ValueError, MemoryError])
def test_an_actor_that_fails_once_is_replaced_and_leadership_stays(
    candidate: Candidate, actor: str, failure: type[Exception]
) -> None:
    before, fence = candidate.starts(), candidate.fence
    strike(candidate, actor, raises(failure), 1)
    after = candidate.starts()
    assert after == {**before, actor: before[actor] + 1}
    assert candidate.fence == fence
    assert not candidate.candidacy.ended.is_set()


@pytest.mark.parametrize("actor", ACTORS)
def test_a_dependency_that_is_away_for_a_moment_restarts_nobody(
    candidate: Candidate, actor: str
) -> None:
    before, fence = candidate.starts(), candidate.fence
    strike(candidate, actor, raises(lambda: Unavailable(Dependency.STORE, "connection lost")), 3)
    # A site check says itself what is away; this one only asks.
    restarted = {actor} if actor == "site-check" else set()
    assert {name for name, n in candidate.starts().items() if n > before[name]} == restarted
    assert candidate.fence == fence


def test_a_store_that_is_away_for_longer_than_the_lease_costs_it_and_it_is_taken_again(
    candidate: Candidate,
) -> None:
    before, fence = candidate.starts(), candidate.fence
    assert fence is not None
    away = raises(lambda: Unavailable(Dependency.STORE, "connection lost"))
    candidate.faults.arm(Fault(candidate.only("leadership", away), times=EVER))
    candidate.wait(lambda: candidate.fence is None, "it steps down")
    candidate.wait(lambda: candidate.candidacy.runtime is None, "its actors end")
    candidate.faults.arm(Fault(away, times=0))
    candidate.wait(lambda: candidate.fence == fence + 1, "it leads again")
    assert candidate.starts() == before


@pytest.mark.parametrize("actor", [actor for actor in ACTORS if actor != "leadership"])
def test_one_that_hangs_is_told_and_costs_no_leadership(candidate: Candidate, actor: str) -> None:
    before, fence = candidate.starts(), candidate.fence
    release = threading.Event()
    candidate.faults.arm(Fault(candidate.only(actor, hangs(release)), times=EVER))

    def barks() -> int:
        """At this actor; on a busy machine others may be late as well."""
        return sum(text.startswith(f"{actor} is in one step") for text in candidate.told.texts)

    candidate.wait(lambda: barks() > 0, "the watchdog barks")
    sleep(LEASE.total_seconds() + 0.5)
    assert candidate.fence == fence
    candidate.faults.arm(Fault(hangs(release), times=0))
    release.set()
    strike(candidate, actor, lambda _call: None, 1)
    assert barks() >= 1
    assert candidate.starts() == before


def test_a_leadership_that_hangs_lets_the_lease_run_out_and_nobody_works_meanwhile(
    candidate: Candidate, postgres_store: SqlStore
) -> None:
    release = threading.Event()
    fence, before = candidate.fence, candidate.starts()
    assert fence is not None
    runtime = candidate.candidacy.runtime
    assert runtime is not None
    candidate.faults.arm(Fault(candidate.only("leadership", hangs(release)), times=EVER))
    candidate.wait(lambda: "watchdog" in candidate.told.alerts, "the watchdog barks")
    taken: list[int | None] = []

    def other_leads() -> bool:
        taken.append(postgres_store.leader.take_lease("b", timedelta(seconds=20)))
        return taken[-1] is not None

    candidate.wait(other_leads, "another takes the lease")
    assert taken[-1] == fence + 1
    assert not runtime._right.holds
    candidate.faults.arm(Fault(hangs(release), times=0))
    release.set()
    candidate.wait(lambda: candidate.fence is None, "it knows that it leads no more")
    candidate.wait(lambda: candidate.candidacy.runtime is None, "its actors end")
    assert candidate.starts() == before
    postgres_store.leader.give_back("b")
    candidate.wait(lambda: candidate.fence == fence + 2, "it leads again")


@pytest.mark.parametrize("actor", ACTORS)
def test_two_hundred_restarts_leave_no_thread_and_no_connection_behind(
    candidate: Candidate, postgres_store: SqlStore, actor: str
) -> None:
    process = psutil.Process()
    strike(candidate, actor, raises(MemoryError), 1)
    before = (process.num_threads(), sessions(postgres_store))
    strike(candidate, actor, raises(MemoryError), RESTARTS)
    after = (process.num_threads(), sessions(postgres_store))
    assert candidate.starts()[actor] >= RESTARTS
    assert after[0] <= before[0] + 1
    # The pool may have grown to what all of them need at once.
    assert after[1] <= max(before[1], len(ACTORS) + 1)


def sessions(store: SqlStore) -> int:
    """At the database server, this one included."""
    query = text(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND backend_type = 'client backend'"
    )
    with store.engine.connect() as connection:
        return int(connection.execute(query).scalar_one())
