"""Killed at any point of sending, a process has sent each request once and has lost none.

The whole process on real servers, with an AODB that answers. MSGEXCHANGE_SOAK=20 kills so often
at each point.
"""

import logging
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import URL

from msgexchange.app.asking import new_request_id
from msgexchange.clock import SystemClock
from msgexchange.codec.catalogue_file import default_catalogue, default_catalogue_text
from msgexchange.lifecycle.request import PlanWanted, ReferenceWanted, Wanted
from msgexchange.pipeline.asking import AskingRules, Order, ask
from msgexchange.store.engine import open_engine
from msgexchange.store.sql_store import SqlStore
from servers.airport import Store
from servers.aodb import Script, answering
from servers.asking import ASKING, OutTable, ask_for, requests
from servers.production import Environment
from servers.sender_run import ARMED, POINTS
from servers.site import ROOT, Site

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.mysql,
    pytest.mark.kafka,
    pytest.mark.process,
    pytest.mark.timeout(3_600),
]
SOAK = int(os.environ.get("MSGEXCHANGE_SOAK", "0"))
STEPS = ("begun", "inserted", "confirmed")
"""Before the insert, after it, after it was confirmed."""
ROUNDS = POINTS * SOAK or (*POINTS, *STEPS)
SENDER_RUN = ROOT / "tests" / "servers" / "sender_run.py"
RULES = AskingRules(sender="TEST", zone=ZoneInfo("Asia/Shanghai"), reference_types={"ARPT"})
FIRST_DAY = date(2030, 1, 1)
LOG = logging.getLogger(__name__)
CLOCK = SystemClock()
NONCE = count(1).__next__


@pytest.fixture
def site(tmp_path: Path, real_settings: Environment) -> Iterator[Site]:
    """One whose AODB echoes, so that every answer tells whose it is."""
    catalogue = tmp_path / "catalogue.toml"
    text = default_catalogue_text()
    assert "# answer_echo" in text
    catalogue.write_text(text.replace("# answer_echo", "answer_echo"))
    settings = {
        **real_settings,
        **ASKING,
        "MSGEXCHANGE_REQUESTS__MATCH": "echo",
        "MSGEXCHANGE_CODEC__CATALOGUE": str(catalogue),
    }
    made = Site(tmp_path, settings, script=SENDER_RUN)
    yield made
    made.kill()


def wanted(turn: int) -> dict[str, str]:
    """A plan and reference data in turns; every plan of a day of its own."""
    if turn % 2:
        return {"type": "ARPT"}
    return {"day": str(FIRST_DAY + timedelta(days=turn))}


def test_a_process_killed_at_any_point_of_sending_sends_each_request_once(
    site: Site, owned_mailbox: URL, store_access: Store, postgres_database: str
) -> None:
    """In every second turn of the points the request is replaced while nobody leads."""
    armed = site.data_dir / ARMED
    replaced: dict[str, str] = {}
    killed_at: dict[str, str] = {}
    began_s = CLOCK.monotonic()
    with answering(owned_mailbox, Script(echoes=True)):
        site.start()
        for turn, point in enumerate(ROUNDS):
            armed.write_text(point)
            # It may be gone before it answers.
            with suppress(OSError, HTTPException):
                ask_for(site, **wanted(turn))
            assert site.exit_status() == -signal.SIGKILL, point
            asked = newest(store_access)
            armed.unlink()
            killed_at[asked] = point
            if turn // len(POINTS) % 2:
                replaced[asked] = ask_while_down(postgres_database, turn + 2)
            # It is known to be dead; what a take-over waits for is not shown here.
            store_access.execute("UPDATE leader_lease SET until_at = now()")
            site.start()
            site.wait_until(lambda: not waiting(store_access), f"after {point}: all has its end")
        assert site.stop() == 0
    verified = site.run("verify", "--kafka")
    assert verified.returncode == 0, verified.stdout
    rounds = len(ROUNDS)
    LOG.info("%d kills in %.0f s", rounds, CLOCK.monotonic() - began_s)
    ended = requests(site)
    assert len(ended) == rounds + len(replaced)
    table = OutTable(owned_mailbox)
    try:
        for id_, request in ended.items():
            rows = table.rows_of(request["seqn"])
            if id_ in replaced:
                ends_replaced(request, rows, killed_at[id_], replaced[id_])
            else:
                assert (request["state"], request["matchedBy"]) == ("DONE", "echo"), request
                assert rows == [request["outboundId"]], request
        assert all(count == 1 for count in Counter(text for _, text in table.answers()).values())
    finally:
        table.close()
    assert "request-doubled" not in site.log
    assert "request-not-sent" not in site.log
    assert event_states(store_access, ended, replaced) == {"SENT"}


def ends_replaced(request: dict[str, Any], rows: list[int], point: str, by: str) -> None:
    """Closed before it was written it never is; a row that was there is known."""
    if point == "confirmed" and request["state"] == "DONE":
        # Its answer was there before it was replaced.
        return
    assert request["state"] == "EXPIRED", request
    assert request["error"].startswith(f"replaced by request {by}"), request
    if point in {"found", "begun", "uncommitted"}:
        assert rows == [], (point, request)
    elif point in {"inserted", "confirmed"}:
        assert len(rows) == 1, (point, request)
    assert rows == ([] if request["outboundId"] is None else [request["outboundId"]]), request


def ask_while_down(store_url: str, turn: int) -> str:
    """As the command line does it."""
    given = wanted(turn)
    day = date.fromisoformat(given["day"]) if "day" in given else None
    what: Wanted = PlanWanted(day, day) if day else ReferenceWanted(given["type"])
    order = Order(request_id=new_request_id(), by="test", reason=None, at=CLOCK.now())
    store = SqlStore(open_engine(store_url), default_catalogue(), nonce=NONCE)
    try:
        return ask(store.requests, what, order, RULES).request_id
    finally:
        store.close()


def newest(store: Store) -> str:
    """The id of the request that was registered last."""
    row = store.execute("SELECT request_id FROM req_track ORDER BY event_id DESC").fetchone()
    assert row is not None
    return str(row[0])


def waiting(store: Store) -> bool:
    """True while a request is open, or the event of one was neither sent nor cancelled."""
    row = store.execute(
        "SELECT (SELECT count(*) FROM req_track WHERE open_kind IS NOT NULL) + (SELECT count(*) "
        "FROM msg_event_state WHERE target = 'MAILBOX:out' AND state = 'PENDING')"
    ).fetchone()
    assert row is not None
    return row[0] != 0


def event_states(store: Store, ended: dict[str, Any], replaced: dict[str, str]) -> set[str]:
    """Of requests nobody replaced."""
    rows = store.execute(
        "SELECT event_id, state FROM msg_event_state WHERE target = 'MAILBOX:out'"
    ).fetchall()
    states = {event_id: str(state) for event_id, state in rows}
    return {states[one["eventId"]] for id_, one in ended.items() if id_ not in replaced}
