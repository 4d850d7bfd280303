"""Requests on their way to the mailbox: none twice, none lost, whatever ends an insert."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import pytest
from store_builders import T0, lead

from fakes.manual_clock import ManualClock
from fakes.out_mailbox import MemoryOutMailbox
from msgexchange.ids import EventId, Fence, RequestId
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.request import PlanWanted, ReferenceWanted, Request, RequestState, Wanted
from msgexchange.lifecycle.states import EventState
from msgexchange.pipeline.asking import AskingRules, Order, ask
from msgexchange.pipeline.leadership import Right
from msgexchange.pipeline.redeliver import NotRedeliverable, redeliver
from msgexchange.pipeline.sending import SendingRules, SendRequests
from msgexchange.ports import Fenced, RetryNow, Unavailable
from msgexchange.store.sql_store import SqlStore

PLAN = PlanWanted(date(2026, 9, 3), date(2026, 9, 3))
RULES = AskingRules(sender="MSGX", zone=ZoneInfo("Asia/Shanghai"), reference_types={"ARPT"})


@dataclass
class Told:
    """Telemetry that keeps alerts by name, and lines of failures."""

    alerts: dict[str, str] = field(default_factory=dict)
    failures: list[dict[str, object]] = field(default_factory=list)

    def alert(self, name: str, text: str) -> None:
        self.alerts[name] = text

    def count(self, name: str, amount: int = 1, **labels: str) -> None: ...

    def observe(self, name: str, seconds: float) -> None: ...

    def log(self, event: str, **fields: object) -> None:
        if event == "request.failed":
            self.failures.append(fields)


class Site:
    """One store and one mailbox; processes come and go."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.mailbox = MemoryOutMailbox()
        self.clock = ManualClock()
        self.told = Told()
        self.rules = SendingRules(
            attempts_max=3, backoff=Backoff(timedelta(seconds=1), timedelta(seconds=60))
        )
        self.fence = Fence(0)
        self.restart()

    def restart(self) -> None:
        """A new process leads and knows what the store knows."""
        self.fence = lead(self.store)
        self.right = Right(self.clock)
        self.right.extend(float("inf"))
        self.sender = SendRequests(
            store=self.store.outbound,
            mailbox=self.mailbox,
            clock=self.clock,
            fence=self.fence,
            right=self.right,
            rules=self.rules,
            telemetry=self.told,
        )

    def ask(self, id_: str = "r1", wanted: Wanted = PLAN) -> None:
        order = Order(request_id=RequestId(id_), by="jl", reason=None, at=T0)
        ask(self.store.requests, wanted, order, RULES)

    def steps(self, amount: int = 1) -> None:
        """Each after the pause the one before asked for."""
        for _ in range(amount):
            self.clock.seconds += self.sender.step()

    def request(self, id_: str = "r1") -> Request:
        found = self.store.requests.recent(every=True, limit=99)
        return {one.request_id: one for one in found}[RequestId(id_)]

    def event(self, id_: str = "r1") -> EventState:
        facts = {fact.event_id: fact.state for fact in self.store.evidence.facts().events}
        event_id = self.request(id_).event_id
        assert event_id is not None
        return facts[event_id]


@pytest.fixture
def site(store: SqlStore) -> Site:
    return Site(store)


def test_a_request_is_written_once_and_known_as_sent(site: Site) -> None:
    site.mailbox.rows[site.mailbox.last_id + 1] = "another's"
    site.mailbox.last_id = 1
    site.ask()
    site.steps(3)
    assert site.request().state is RequestState.SENT
    assert (site.request().outbound_after, site.request().outbound_id) == (1, 2)
    assert site.event() is EventState.SENT
    assert site.mailbox.inserts == 1


def test_requests_leave_in_the_order_they_were_made(site: Site) -> None:
    site.ask("r1")
    site.ask("r2", ReferenceWanted("ARPT"))
    site.steps(2)
    assert ["RQFD" in text for _, text in sorted(site.mailbox.rows.items())] == [True, False]


def test_it_is_known_as_being_sent_before_the_insert(site: Site) -> None:
    site.ask()
    seen: list[RequestState] = []
    site.mailbox.before_insert = lambda: seen.append(site.request().state)
    site.steps()
    assert seen == [RequestState.SENDING]


class Killed(BaseException):
    """The process ends here."""


def kill() -> None:
    raise Killed


def killed_before_insert(site: Site) -> None:
    site.mailbox.before_insert = kill
    with pytest.raises(Killed):
        site.steps()
    site.mailbox.before_insert = lambda: None


def killed_after_insert(site: Site) -> None:
    def sent(*_: object, **__: object) -> None:
        raise Killed

    real, site.store.outbound.sent = site.store.outbound.sent, sent  # type: ignore[method-assign]
    with pytest.raises(Killed):
        site.steps()
    site.store.outbound.sent = real  # type: ignore[method-assign]


def killed_after_confirm(site: Site) -> None:
    site.steps()


@pytest.mark.parametrize("ends", [killed_before_insert, killed_after_insert, killed_after_confirm])
def test_a_process_killed_at_any_step_sends_it_once_all_the_same(
    site: Site, ends: Callable[[Site], None]
) -> None:
    site.ask()
    ends(site)
    site.restart()
    site.steps(4)
    assert len(site.mailbox.rows) == 1
    assert site.request().state is RequestState.SENT
    assert not site.told.alerts


@pytest.mark.parametrize("end", ["lost", "unknown-written", "unknown-rolled-back"])
def test_however_the_connection_is_lost_it_is_sent_once(site: Site, end: str) -> None:
    site.mailbox.ends = [end]
    site.ask()
    if end == "lost":
        with pytest.raises(Unavailable):
            site.steps()
    site.steps(4)
    assert len(site.mailbox.rows) == 1
    assert site.request().state is RequestState.SENT


def test_a_row_that_may_still_appear_is_waited_for(site: Site) -> None:
    site.mailbox.ends = ["unknown-rolled-back"]
    site.ask()
    site.steps()
    pause_s = site.sender.step()
    assert 0 < pause_s <= site.rules.settle.total_seconds()
    [text] = [site.store.outbound.next()]
    assert text is not None
    site.mailbox.rows[7] = text.text
    site.clock.seconds += pause_s
    site.steps()
    assert (site.mailbox.inserts, site.request().outbound_id) == (1, 7)


def test_a_lost_write_is_known_as_lost_where_rows_are_removed(site: Site) -> None:
    site.rules = SendingRules(rows_removed=True)
    site.restart()
    site.mailbox.ends = ["lost"]
    site.ask()
    with pytest.raises(Unavailable):
        site.steps()
    site.steps(2)
    assert site.request().state is RequestState.SENT


def test_what_cannot_be_known_goes_to_a_person_and_an_answer_may_still_come(site: Site) -> None:
    site.rules = SendingRules(rows_removed=True)
    site.restart()
    site.ask()
    killed_before_insert(site)
    site.restart()
    site.steps(3)
    assert "cannot be known" in site.told.alerts["request-not-sent"]
    assert site.event() is EventState.DEAD
    assert site.request().state is RequestState.SENDING
    assert site.mailbox.rows == {}


def test_ids_that_went_back_show_that_rows_are_removed(site: Site) -> None:
    site.mailbox.rows[5] = "another's"
    site.mailbox.last_id = 5
    site.ask()
    killed_before_insert(site)
    site.mailbox.rows.clear()
    site.restart()
    site.steps(3)
    assert site.event() is EventState.DEAD


def test_a_newest_row_that_is_gone_shows_that_rows_are_removed(site: Site) -> None:
    site.mailbox.rows[1] = "another's"
    site.mailbox.last_id = 1
    site.ask()
    killed_after_insert(site)
    site.mailbox.rows = {3: "another's"}
    site.restart()
    site.steps(3)
    assert site.event() is EventState.DEAD
    assert list(site.mailbox.rows) == [3]


def test_rows_removed_from_an_empty_table_show_by_the_request_before(site: Site) -> None:
    site.ask("r1")
    site.steps()
    site.mailbox.rows.clear()
    site.ask("r2")
    killed_after_insert(site)
    site.mailbox.rows.clear()
    site.restart()
    site.steps(3)
    assert site.event("r2") is EventState.DEAD
    assert "cannot be known" in site.told.alerts["request-not-sent"]
    assert site.mailbox.rows == {}


def test_a_row_that_is_found_is_certain_even_where_rows_are_removed(site: Site) -> None:
    site.rules = SendingRules(rows_removed=True)
    site.restart()
    site.ask()
    killed_after_insert(site)
    site.restart()
    site.steps(3)
    assert site.request().state is RequestState.SENT


def test_a_request_replaced_while_its_event_waits_is_never_written(site: Site) -> None:
    site.ask("r1")
    site.ask("r2")
    site.steps(3)
    assert site.event("r1") is EventState.CANCELLED
    assert site.request("r1").state is RequestState.EXPIRED
    assert [site.request("r2").seqn in text for text in site.mailbox.rows.values()] == [True]


def test_a_request_replaced_after_an_interrupted_write_is_looked_up_not_written(
    site: Site,
) -> None:
    site.ask("r1")
    killed_before_insert(site)
    site.ask("r2")
    site.restart()
    site.steps(5)
    assert site.event("r1") is EventState.CANCELLED
    assert site.event("r2") is EventState.SENT
    assert len(site.mailbox.rows) == 1


def test_one_replaced_after_its_row_was_written_is_known_as_sent(site: Site) -> None:
    site.ask("r1")
    killed_after_insert(site)
    site.ask("r2")
    site.restart()
    site.steps(5)
    assert (site.event("r1"), site.request("r1").state) == (EventState.SENT, RequestState.EXPIRED)
    assert site.request("r1").outbound_id == 1


def test_a_refused_insert_backs_off_and_dies_with_its_request(site: Site) -> None:
    site.mailbox.ends = ["refused"] * 3
    site.ask("r1")
    site.ask("r2", ReferenceWanted("ARPT"))
    site.steps(1)
    assert site.request("r2").state is RequestState.REGISTERED
    for _ in range(9):
        site.steps()
    assert site.event("r1") is EventState.DEAD
    assert site.request("r1").state is RequestState.FAILED
    assert "no column SITE" in str(site.request("r1").error)
    assert "no column SITE" in site.told.alerts["request-not-sent"]
    assert [line["attempts"] for line in site.told.failures] == [1, 2, 3]
    assert [line["next_attempt_at"] is None for line in site.told.failures] == [False, False, True]
    assert {line["request"] for line in site.told.failures} == {"r1"}
    assert site.event("r2") is EventState.SENT


def test_a_row_written_twice_is_told(site: Site) -> None:
    site.ask()
    killed_after_insert(site)
    site.mailbox.rows[9] = site.mailbox.rows[1]
    site.restart()
    site.steps(2)
    assert "[1, 9]" in site.told.alerts["request-doubled"]
    assert site.request().outbound_id == 1


def test_without_the_right_or_under_a_newer_fence_nothing_is_written(site: Site) -> None:
    site.ask()
    site.right.revoke()
    with pytest.raises(RetryNow):
        site.steps()
    stale = site.sender
    site.restart()
    with pytest.raises(Fenced):
        stale.step()
    assert site.mailbox.inserts == 0
    site.steps(4)
    assert len(site.mailbox.rows) == 1


def test_a_dead_request_is_asked_anew_not_redelivered(site: Site) -> None:
    site.mailbox.ends = ["refused"] * 3
    site.ask()
    for _ in range(6):
        site.steps()
    event_id = site.request().event_id
    assert event_id is not None
    with pytest.raises(NotRedeliverable, match="ask anew"):
        redeliver(
            site.store.redelivery,
            EventId(event_id),
            by="jl",
            reason="x",
            timezone="Asia/Shanghai",
            now=T0,
        )
