"""An order is carried out once or not at all, wherever the leader is killed.

MSGEXCHANGE_SOAK=20 kills so often at each point.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from replay_world import Site

from factories import plan, status
from msgexchange.ids import MailboxId
from msgexchange.pipeline.replay import BEGUN_MAX
from msgexchange.store.sql_store import SqlStore
from servers import replayer

TIMES = int(os.environ.get("MSGEXCHANGE_SOAK", "2"))
SET = 4
"""Messages of one order, each of a flight of its own."""


def carry_out(url: str, point: str) -> int:
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), str(root / "tests")])
    done = subprocess.run(
        [sys.executable, replayer.__file__, url, point],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


def with_dead(store: SqlStore, amount: int) -> Site:
    site = Site(store, broken={"MENDME"})
    flids = [f"{n:04}" for n in range(SET)]
    site.take(1, plan(*flids))
    for n in range(amount * SET):
        site.take(2 + n, status(flids[n % SET], f"MENDME{n}", seqn=2 + n))
    site.broken = set()
    store.leader.give_back("test")
    return site


def ordered(site: Site, first: int) -> str:
    token = site.plan(*range(first, first + SET)).token
    assert token is not None
    return site.desk.order(token, by="jl", reason="mended", allow_regression=False).order_id


def done(site: Site, order_id: str, first: int) -> int:
    """How many of the set are applied; everything else of the order says the same."""
    wanted = set(range(first, first + SET))
    facts = site.store.evidence.facts()
    applied = {fact.message_id for fact in facts.messages if fact.replayed} & wanted
    changed = [change.message_id for change in facts.changes if change.message_id in wanted]
    events = [event.message_id for event in facts.events if event.message_id in wanted]
    acts = [
        act
        for act in site.store.audit.acts(act="replay", limit=10_000)
        if act.subject == f"order {order_id}"
    ]
    order = site.store.replays.order(order_id)
    assert order is not None
    assert sorted(changed) == sorted(applied), "each is applied once"
    assert sorted(events) == sorted([*applied, *applied]), "with both its events"
    assert len(acts) == (0 if order.outcome is None else 1)
    assert (order.outcome == "done") == bool(applied)
    assert site.store.letters.texts([MailboxId(id_) for id_ in wanted]).keys() == wanted - applied
    return len(applied)


@pytest.mark.postgres
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_a_leader_killed_anywhere_has_carried_an_order_out_whole_or_not_at_all(
    postgres_store: SqlStore, postgres_database: str
) -> None:
    points = replayer.POINTS * TIMES
    site = with_dead(postgres_store, len(points))
    for n, point in enumerate(points):
        first = 2 + n * SET
        order_id = ordered(site, first)
        assert carry_out(postgres_database, point) == -signal.SIGKILL, point
        assert done(site, order_id, first) == (SET if point == "committed" else 0), point
        assert carry_out(postgres_database, replayer.NEVER) == 0
        assert done(site, order_id, first) == SET, point


@pytest.mark.postgres
@pytest.mark.process
@pytest.mark.timeout(600)
def test_an_order_under_which_processes_end_again_and_again_is_given_up(
    postgres_store: SqlStore, postgres_database: str
) -> None:
    site = with_dead(postgres_store, 1)
    order_id = ordered(site, 2)
    for _ in range(BEGUN_MAX):
        assert carry_out(postgres_database, "locked") == -signal.SIGKILL
    assert carry_out(postgres_database, replayer.NEVER) == 0
    assert done(site, order_id, 2) == 0
    order = postgres_store.replays.order(order_id)
    assert order is not None
    assert order.outcome is not None
    assert f"{BEGUN_MAX} processes ended" in order.outcome
