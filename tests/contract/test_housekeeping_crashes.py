"""Killed at any point of a daily job, a process loses nothing and doubles nothing.

MSGEXCHANGE_SOAK=20 kills so often at each point.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import select
from store_builders import T0, change, commit, flight, lead, new, receive, result

from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.flight.state import FlightStatus
from msgexchange.history.files import HistoryFiles
from msgexchange.ids import Flid, MailboxId
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import Batch, MarkOutcome
from msgexchange.store.engine import open_engine
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import flight_change, msg_event, proc_state, proc_state_hst
from servers import housekeeper

TIMES = int(os.environ.get("MSGEXCHANGE_SOAK", "2"))
KILLS = TIMES * len(housekeeper.POINTS)
FLIGHTS, MESSAGES = 4 * KILLS, 6 * KILLS
YOUNG = 100_000
"""Ids from here on changed a flight just now: these changes are kept."""
OVER = {"ACTM": "03SEP261804", "FLNO": "CZ1"}


def fill(store: SqlStore) -> None:
    fence = lead(store)
    states = [
        flight(
            f"{n:04}",
            2,
            OVER,
            status=FlightStatus.DELETED if n % 4 == 0 else FlightStatus.ACTIVE,
        )
        for n in range(FLIGHTS)
    ]
    receive(store, *range(1, MESSAGES + 1))
    results = [
        result(id_, MessageState.DEAD, error_class=ErrorClass.PROTOCOL, error="x")
        if id_ % 7 == 0
        else result(id_)
        for id_ in range(1, MESSAGES + 1)
    ]
    commit(store, fence, Batch(messages=results, flights=[new(state) for state in states]))
    old = [change("9999", id_, id_) for id_ in range(1, MESSAGES + 1)]
    commit(store, fence, Batch(messages=(), changes=old))
    young = [change("9999", YOUNG + n, YOUNG + n) for n in range(10)]
    commit(store, fence, Batch(messages=(), changes=young), now=store.leader.database_now())
    marks = {MailboxId(id_): MarkOutcome.MARKED for id_ in range(1, MESSAGES + 1)}
    store.pump.record_marks(marks, now=T0)


def keep_house(url: str, folder: Path, point: str) -> int:
    root = Path(__file__).parents[2]
    command = [sys.executable, housekeeper.__file__, url, str(folder), point]
    paths = os.pathsep.join([str(root), str(root / "tests")])
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


@pytest.mark.postgres
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_kills_between_any_two_effects_lose_nothing_and_double_nothing(
    postgres_database: str, tmp_path: Path
) -> None:
    engine = open_engine(postgres_database)
    store = SqlStore(engine, default_catalogue(), nonce=count(1).__next__)
    try:
        fill(store)
        for point in housekeeper.POINTS * TIMES:
            assert keep_house(postgres_database, tmp_path, point) == -signal.SIGKILL, point
        assert keep_house(postgres_database, tmp_path, "-") == 0
        everything_is_in_its_place(store, HistoryFiles(tmp_path))
    finally:
        store.close()


def everything_is_in_its_place(store: SqlStore, history: HistoryFiles) -> None:
    assert store.reads.flights(operation_day=None, status=None, after=None, limit=9_999) == []
    for n in range(FLIGHTS):
        lives = history.lives(Flid(f"{n:04}"))
        assert [life.state.version for life in lives] == [2], n
        assert lives[0].state.content == OVER
    with store.engine.connect() as connection:
        events = Counter(
            (row.flid, row.event_type) for row in connection.execute(select(msg_event))
        )
        inbox = list(connection.execute(select(proc_state.c.msg_id)).scalars())
        changed = list(connection.execute(select(flight_change.c.msg_id)).scalars())
        archived = list(connection.execute(select(proc_state_hst.c.msg_id)).scalars())
    announced = {
        (f"{n:04}", kind): 1 for n in range(FLIGHTS) if n % 4 for kind in ("NOTICE", "TOMBSTONE")
    }
    assert events == announced
    assert sorted(changed) == [YOUNG + n for n in range(10)]
    assert sorted(inbox) == [id_ for id_ in range(1, MESSAGES + 1) if id_ % 7 == 0]
    assert sorted(inbox + archived) == list(range(1, MESSAGES + 1))
