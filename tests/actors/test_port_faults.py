"""Each actor, each of its ports, each fault: restarted or paused, in order, nothing lost or leaked.

MSGEXCHANGE_SOAK=50 strikes at the first fifty calls of each port instead of the first two.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text

from fakes.faults import Fault, hangs, raises
from fakes.working_site import CLOCK, WorkingSite
from msgexchange.actors import supervisor
from msgexchange.app import runtime
from msgexchange.config import Settings, load
from msgexchange.ids import MailboxId
from msgexchange.lifecycle import breaker
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.states import ErrorClass
from msgexchange.lifecycle.supervision import RestartPolicy
from msgexchange.ports import Dependency, Unavailable
from msgexchange.store.sql_store import SqlStore
from servers.waiting import sleep

CALLS = int(os.environ.get("MSGEXCHANGE_SOAK", "2"))
RESTARTS = 200
A_WHILE = 6
ACTORS_AND_PORTS = [
    ("inbox", "intake"),
    ("inbox", "mailbox"),
    ("pump", "pump"),
    ("pump", "mailbox"),
    ("dispatcher-msg", "outbox"),
    ("dispatcher-msg", "producer"),
    ("schd-flush", "schd"),
    ("schd-flush", "producer"),
    ("jobs", "backfill"),
    ("jobs", "mailbox"),
]
PORTS_OF: dict[str, set[str]] = {
    port: {actor for actor, of in ACTORS_AND_PORTS if of == port} for _, port in ACTORS_AND_PORTS
}
DEPENDENCY = {"mailbox": Dependency.MAILBOX, "producer": Dependency.BROKER}
FIRST_CALLS = {
    *("heads", "texts", "state", "list_after", "pending", "send", "begin_flush"),
    *("due_marks", "mark"),
}
"""Outside of a transaction: whoever hangs inside one holds all writers of a SQLite file up."""
EVERY_PORT = sorted(PORTS_OF)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    given = {
        "MSGEXCHANGE_PIPELINE__BACKOFF": "5 ms",
        "MSGEXCHANGE_PIPELINE__POLL_INTERVAL": "20 ms",
        "MSGEXCHANGE_PIPELINE__MAX_ATTEMPTS": "100",
    }
    loaded = load(None, given, None, tmp_path)
    hasty = {
        "supervisor": loaded.supervisor.model_copy(
            update={"watchdog": timedelta(milliseconds=500), "max_restarts": 10_000}
        ),
        "schd": loaded.schd.model_copy(update={"flush_period": timedelta(milliseconds=20)}),
    }
    return loaded.model_copy(update=hasty)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-offs of milliseconds, and the watchdog awake."""
    logging.getLogger("pykka").setLevel(logging.CRITICAL)
    at_once = Backoff(timedelta(milliseconds=1), timedelta(milliseconds=4))
    monkeypatch.setattr(runtime, "RestartPolicy", partial(RestartPolicy, backoff=at_once))
    monkeypatch.setattr(breaker, "PROBE_BACKOFF", at_once)
    monkeypatch.setattr(supervisor, "INSPECT_EVERY_S", 0.02)


@pytest.fixture
def site(
    hasty: None, settings: Settings, sqlite_file_store: SqlStore, tmp_path: Path
) -> Iterator[WorkingSite]:
    with working(settings, sqlite_file_store, tmp_path) as site:
        yield site


@pytest.fixture
def postgres_site(
    hasty: None, settings: Settings, postgres_store: SqlStore, tmp_path: Path
) -> Iterator[WorkingSite]:
    with working(settings, postgres_store, tmp_path) as site:
        yield site


@contextmanager
def working(settings: Settings, store: SqlStore, folder: Path) -> Iterator[WorkingSite]:
    """Its first messages are through; it leaves no thread and no session in use."""
    threads = threading.active_count()
    site = WorkingSite(settings, store, folder)
    site.write(3)
    site.wait(site.is_through, "the beginning is through")
    yield site
    site.stop()
    assert threading.active_count() == threads
    assert store.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def strike_at_each_call(
    site: WorkingSite, port: str, act: Callable[[str], None], times: int
) -> None:
    """Let the fault strike at the first call, then at the second, ...; recover in between."""
    faults = site.faults[port]
    for at in range(1, CALLS + 1):
        fault = Fault(act, at=at, times=times)
        faults.arm(fault)
        write_until(site, fault)
        site.wait(site.is_through, f"recovered from {faults.calls}")
        site.wait(lambda: site.runtime.breakers() == {}, "nobody waits")


def write_until(site: WorkingSite, fault: Fault) -> None:
    """Messages one after the other, so that every port has calls to fail at."""

    def is_over() -> bool:
        if fault.times > 0:
            site.write(1)
            sleep(0.02)
        return fault.times == 0

    site.wait(is_over, "the fault has struck")


@pytest.mark.parametrize("port", EVERY_PORT)
def test_a_port_that_fails_once_restarts_or_charges_and_all_goes_on(
    site: WorkingSite, port: str
) -> None:
    before = site.starts()
    strike_at_each_call(site, port, raises(lambda: ValueError("a bug")), 1)
    restarted = {name for name, starts in site.starts().items() if starts > before[name]}
    assert restarted <= PORTS_OF[port]
    assert restarted or site.attempts()
    assert site.gave_up == []
    assert site.problems() == []


@pytest.mark.parametrize("port", EVERY_PORT)
def test_a_port_that_is_away_for_a_while_pauses_its_actors_and_charges_nobody(
    site: WorkingSite, port: str
) -> None:
    before = site.starts()
    away = Unavailable(DEPENDENCY.get(port, Dependency.STORE), "connection lost")
    strike_at_each_call(site, port, raises(lambda: away), A_WHILE)
    assert "breaker-open" in site.told.alerts
    assert site.starts() == before
    assert site.attempts() == 0
    assert site.problems() == []


def test_a_head_that_loses_connections_while_probes_are_green_is_charged(
    site: WorkingSite,
) -> None:
    site.green_at_s = CLOCK.monotonic

    def lose_texts(call: str) -> None:
        if call == "texts":
            raise Unavailable(Dependency.MAILBOX, "connection lost")

    fault = Fault(lose_texts, times=1_000_000)
    site.faults["mailbox"].arm(fault)
    site.write(2)
    site.wait(lambda: site.attempts() >= 2, "it is charged twice")
    fault.times = 0
    site.wait(site.is_through, "all goes on")
    first, second = (site.store.reads.message(MailboxId(id_)) for id_ in (4, 5))
    assert first is not None
    assert second is not None
    assert {failure.error_class for failure in first.failures} == {ErrorClass.INFRA}
    assert "lost 3 times on this message" in first.failures[0].error
    assert second.attempts == 0
    assert site.problems() == []


@pytest.mark.parametrize("port", EVERY_PORT)
def test_an_actor_that_dies_in_a_call_is_replaced_and_what_it_held_is_closed(
    site: WorkingSite, port: str
) -> None:
    before = site.starts()
    strike_at_each_call(site, port, raises(MemoryError), 1)
    restarted = {name for name, starts in site.starts().items() if starts > before[name]}
    assert restarted
    assert restarted <= PORTS_OF[port]
    assert site.problems() == []


@pytest.mark.parametrize(("actor", "port"), ACTORS_AND_PORTS, ids=lambda name: name)
def test_a_call_that_hangs_past_the_watchdog_is_told_and_nobody_takes_its_place(
    site: WorkingSite, actor: str, port: str
) -> None:
    before = site.starts()
    release = threading.Event()

    def hang_if_it_is_this_actor(call: str) -> None:
        thread = threading.current_thread().name
        if thread == actor and call in FIRST_CALLS:
            hangs(release)(call)
        elif actor == "jobs" and call == "mark":
            # The sweep marks only what the pump could not.
            raise Unavailable(Dependency.MAILBOX, "connection lost")

    site.faults[port].arm(Fault(hang_if_it_is_this_actor, times=1_000_000))
    site.write(1)

    def barks() -> int:
        """At this actor; on a busy machine others are late as well, and it may have been before.

        That one hanging step is told once is shown where nothing else runs.
        """
        return sum(text.startswith(f"{actor} is in one step") for text in site.told.texts)

    site.wait(lambda: barks() > 0, "the watchdog barks")
    if actor in runtime.HEARTBEATS:
        site.wait(lambda: site.runtime.hung() == actor, "it is told as hung")
    assert site.starts() == before
    site.faults[port].arm(Fault(hang_if_it_is_this_actor, times=0))
    release.set()
    site.write(2)
    site.wait(site.is_through, "all goes on")
    assert site.runtime.hung() is None
    assert site.starts() == before
    assert site.attempts() == 0
    assert site.problems() == []


@pytest.mark.postgres
@pytest.mark.parametrize("actor", ["inbox", "pump", "dispatcher-msg", "schd-flush", "jobs"])
def test_two_hundred_restarts_leave_no_thread_and_no_connection_behind(
    postgres_site: WorkingSite, actor: str
) -> None:
    site = postgres_site
    port = next(port for of, port in ACTORS_AND_PORTS if of == actor and port != "mailbox")
    process = psutil.Process()
    before = (process.num_threads(), process.num_fds(), sessions(site.store))
    site.faults[port].arm(Fault(raises(MemoryError), times=RESTARTS))
    site.write(2)
    site.wait(lambda: site.starts()[actor] > RESTARTS, "so many restarts", 60)
    site.wait(site.is_through, "all goes on")
    after = (process.num_threads(), process.num_fds(), sessions(site.store))
    assert after[0] <= before[0] + 1
    # The pool may have grown to what the five actors need at once.
    assert after[2] <= max(before[2], len(site.starts()) + 1)
    assert after[1] - after[2] <= before[1] - before[2] + 2
    assert site.problems() == []


def sessions(store: SqlStore) -> int:
    """At the database server, this one included."""
    with store.engine.connect() as connection:
        found = connection.execute(
            text(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND backend_type = 'client backend'"
            )
        )
        return int(found.scalar_one())
