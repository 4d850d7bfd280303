"""Requests on real servers, and an AODB that answers them in every way it may."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL

from servers.airport import Store
from servers.aodb import LATE_S, MINUTES, SECONDS, SHORT_MINUTES, Answering, Script, answering, flid
from servers.asking import ASKING, OutTable, ask_for, requests
from servers.production import Environment
from servers.site import Site, running_site
from servers.waiting import sleep

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.mysql,
    pytest.mark.kafka,
    pytest.mark.process,
]
TIMEOUT_S = 6
GIVEN_UP_S = TIMEOUT_S + 7
"""After it was sent: an answer that was taken in in time may show itself for 5 s."""
SETTINGS = {
    **ASKING,
    "MSGEXCHANGE_REQUESTS__TIMEOUT": f"{TIMEOUT_S} s",
    "MSGEXCHANGE_PIPELINE__MAX_ATTEMPTS": "4",
}
DAY = date(2026, 9, 3)


@pytest.fixture
def table(owned_mailbox: URL) -> Iterator[OutTable]:
    made = OutTable(owned_mailbox)
    yield made
    made.close()


def wait_for_states(store: Store, site: Site, **wanted: int) -> None:
    """Until so many requests are in each state."""

    def there() -> bool:
        rows = store.execute("SELECT state, count(*) FROM req_track GROUP BY state").fetchall()
        found = {str(state): int(str(count)) for state, count in rows}
        return all(found.get(state, 0) == count for state, count in wanted.items())

    site.wait_until(there, f"requests are {wanted}")


def not_applied(store: Store) -> dict[str, list[str]]:
    """Why messages were not, by their type and in their order."""
    found: dict[str, list[str]] = {}
    rows = store.execute(
        "SELECT type, error FROM proc_state WHERE state = 'SKIPPED' ORDER BY msg_id"
    ).fetchall()
    for type_, error in rows:
        found.setdefault(str(type_), []).append(str(error))
    return found


def seconds_after(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


WAYS = {
    "ARPT": Answering.SLOW,
    "ARLN": Answering.LATE,
    "ACTY": Answering.WRONG,
    "ACFT": Answering.TWICE,
    "CTRY": Answering.SWAPPED,
    "CITY": Answering.SWAPPED,
    "TRML": Answering.NEVER,
    "STDS": Answering.ERROR,
    "GATS": Answering.BLOCKED,
}
UNANSWERED = {"ARLN", "ACTY", "TRML", "STDS"}


def test_every_way_of_answering_ends_as_it_must(
    tmp_path: Path,
    real_settings: Environment,
    owned_mailbox: URL,
    store_access: Store,
    table: OutTable,
) -> None:
    with (
        answering(owned_mailbox, Script(answers=dict(WAYS))),
        running_site(tmp_path, {**real_settings, **SETTINGS}) as site,
    ):
        asked = {type_: ask_for(site, type=type_) for type_ in WAYS}
        asked["plan"] = ask_for(site, day=str(DAY))
        wait_for_states(store_access, site, DONE=len(asked) - len(UNANSWERED))
        site.wait_until(lambda: "ARLN" in not_applied(store_access), "the late answer came")
        # Counted once they are committed.
        for how, count in (("kind", 6), ("unmatched", 3)):
            name = f'msgexchange_answers_total{{matched="{how}"}}'
            site.wait_until(lambda: site.metric(name) == count, f"{count} {how}")  # noqa: B023
        assert site.metric('msgexchange_alerts_total{name="aodb-error"}') == 1
        assert site.metric('msgexchange_open_requests{kind="reference"}') == len(UNANSWERED)
        sleep(max(0, GIVEN_UP_S - LATE_S))
        # A process that starts looks at once.
        assert site.stop() == 0
        site.start()
        wait_for_states(store_access, site, EXPIRED=len(UNANSWERED))
        told = site.metric('msgexchange_alerts_total{name="request-unanswered"}')
        assert told == len(UNANSWERED)
        assert "(approximate)" in site.run("requests", "--all").stdout
        listed = requests(site)
        ended = {type_: listed[id_] for type_, id_ in asked.items()}
    for type_, request in ended.items():
        assert table.rows_of(request["seqn"]) == [request["outboundId"]], request
        if type_ in UNANSWERED:
            assert (request["state"], request["error"]) == (
                "EXPIRED",
                f"unanswered for {TIMEOUT_S} s",
            )
        else:
            assert (request["state"], request["approximate"]) == ("DONE", True), request
    reasons = not_applied(store_access)
    assert reasons["ARLN"][0].startswith(f"no-open-request: late: request {asked['ARLN']}")
    assert reasons["HAGT"] == ["no-open-request: nobody has asked for reference:HAGT"]
    first = ended["ACFT"]["answerMessageId"]
    second, copy = reasons["ACFT"]
    assert second == "no-open-request: nobody has asked for reference:ACFT"
    assert copy == f"duplicate-of:{first + 1}"
    assert reasons["EROR"] == ["ignored:EROR"]
    assert ended["CTRY"]["answerMessageId"] > ended["CITY"]["answerMessageId"]
    waited_s = seconds_after(ended["GATS"]["sentAt"], ended["GATS"]["finishedAt"])
    assert waited_s > TIMEOUT_S, "its answer waited behind a message that failed"


def test_clocks_apart_and_times_to_the_minute_keep_no_answer_out(
    tmp_path: Path, real_settings: Environment, owned_mailbox: URL, store_access: Store
) -> None:
    """Each plan of three days comes in three messages."""
    ways = ((-90, MINUTES), (90, MINUTES), (-90, SHORT_MINUTES), (90, SECONDS))
    with running_site(tmp_path, {**real_settings, **ASKING}) as site:
        for number, (clock_s, dttm) in enumerate(ways):
            # Of the same days, a plan that is older than one that came is stale.
            first, last = DAY + timedelta(days=3 * number), DAY + timedelta(days=3 * number + 2)
            answers = {str(first): Answering.BY_DAY}
            with answering(owned_mailbox, Script(answers=answers, clock_s=clock_s, dttm=dttm)):
                ask_for(site, day=str(first), to=str(last))
                wait_for_states(store_access, site, DONE=number + 1)
        for request in requests(site).values():
            assert len(request["daysAnswered"]) == 3, request
            for day in map(date.fromisoformat, request["days"]):
                assert site.get(f"/flights/{flid(request['seqn'], day)}")[0] == 200
    assert not_applied(store_access) == {}


def test_without_tolerance_a_minute_still_counts_as_a_minute_and_an_older_answer_does_not(
    tmp_path: Path, real_settings: Environment, owned_mailbox: URL, store_access: Store
) -> None:
    exact = {**real_settings, **ASKING, "MSGEXCHANGE_REQUESTS__CLOCK_TOLERANCE": "0 s"}
    with running_site(tmp_path, exact) as site:
        with answering(owned_mailbox, Script(dttm=MINUTES)):
            ask_for(site, type="ARPT")
            wait_for_states(store_access, site, DONE=1)
        with answering(owned_mailbox, Script(clock_s=-90)):
            ask_for(site, type="ARPT")
            site.wait_until(lambda: not_applied(store_access) != {}, "an answer came")
    [reason] = not_applied(store_access)["ARPT"]
    assert "older than the request" in reason


def test_a_request_replaced_while_its_event_waits_is_never_written(
    tmp_path: Path,
    real_settings: Environment,
    owned_mailbox: URL,
    store_access: Store,
    table: OutTable,
) -> None:
    """It waits because the mailbox refuses the row."""
    with (
        answering(owned_mailbox),
        running_site(tmp_path, {**real_settings, **ASKING}) as site,
    ):
        table.execute("ALTER TABLE COUTMSGS ADD SITE VARCHAR(8) NOT NULL")
        first = ask_for(site, day=str(DAY))
        wait_for_states(store_access, site, SENDING=1)
        second = ask_for(site, day=str(DAY))
        table.execute("ALTER TABLE COUTMSGS DROP SITE")
        wait_for_states(store_access, site, DONE=1)
        ended = requests(site)
        events = store_access.execute(
            "SELECT event_id, state FROM msg_event_state WHERE target = 'MAILBOX:out'"
        ).fetchall()
    states = {event_id: str(state) for event_id, state in events}
    assert states[ended[first]["eventId"]] == "CANCELLED"
    assert ended[first]["error"] == f"replaced by request {second}"
    assert table.rows_of(ended[first]["seqn"]) == []
    assert (ended[second]["state"], states[ended[second]["eventId"]]) == ("DONE", "SENT")
