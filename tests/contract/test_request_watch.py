"""Requests that are over their time, asked again, doubled, or made by the clock."""

from datetime import date, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from store_builders import T0, lead, receive

from fakes.line import CATALOGUE, ManualClock
from fakes.out_mailbox import MemoryOutMailbox
from fakes.steps import Told
from msgexchange.ids import RequestId
from msgexchange.lifecycle.daily import Daily
from msgexchange.lifecycle.request import (
    ExpiryPolicy,
    PlanWanted,
    ReferenceWanted,
    Request,
    RequestState,
    Wanted,
)
from msgexchange.pipeline.asking import AskingRules, Order, ask
from msgexchange.pipeline.asking_daily import AskDaily
from msgexchange.pipeline.daily import DailyJob
from msgexchange.pipeline.request_watch import DoubledWatch, RequestTimeouts
from msgexchange.ports import Fenced
from msgexchange.store.sql_store import SqlStore

ZONE = ZoneInfo("Asia/Shanghai")
DAY = date(2026, 9, 3)
PLAN = PlanWanted(DAY, DAY)
RULES = AskingRules(sender="MSGX", zone=ZONE, reference_types=frozenset(CATALOGUE.references))


class Site:
    def __init__(self, store: SqlStore, *, resend: int = 0) -> None:
        self.store = store
        self.clock = ManualClock()
        self.told = Told()
        self.woken = 0
        self.fence = lead(store)
        self.numbers = iter(range(1, 99))
        self.timeouts = RequestTimeouts(
            store=store.requests,
            clock=self.clock,
            fence=self.fence,
            policy=ExpiryPolicy(timeout=timedelta(minutes=10), resend=resend),
            rules=RULES,
            new_request_id=self.new_id,
            telemetry=self.told,
            wake_sender=self.wake,
        )

    def new_id(self) -> RequestId:
        return RequestId(f"n{next(self.numbers)}")

    def wake(self) -> None:
        self.woken += 1

    def ask(self, wanted: Wanted = PLAN, id_: str = "r1") -> None:
        order = Order(request_id=RequestId(id_), by="jl", reason=None, at=self.clock.now())
        ask(self.store.requests, wanted, order, RULES)

    def send(self, times: int = 1) -> None:
        entry = self.store.outbound.next()
        assert entry is not None
        for _ in range(times):
            self.store.outbound.begin(self.fence, entry, after=0, now=self.clock.now())
        self.store.outbound.sent(self.fence, entry, 1, now=self.clock.now())

    def look(self, at_s: float) -> None:
        self.clock.seconds = at_s
        self.timeouts.step()

    def requests(self) -> list[Request]:
        found = self.store.requests.recent(every=True, limit=99)
        return sorted(found, key=lambda one: one.event_id or 0)


@pytest.fixture
def site(store: SqlStore) -> Site:
    return Site(store)


def test_a_request_without_an_answer_is_expired_and_told(site: Site) -> None:
    site.ask()
    site.clock.seconds = 100
    site.send()
    site.look(100 + 605)
    assert site.requests()[0].is_open
    site.look(100 + 606)
    [over] = site.requests()
    assert (over.state, over.error) == (RequestState.EXPIRED, "unanswered for 10 min")
    assert site.told.alerts == ["request-unanswered"]
    assert "plan of 2026-09-03" in site.told.texts[0]
    assert site.store.outbound.next() is None


def test_nothing_expires_while_an_older_message_waits(site: Site) -> None:
    site.ask()
    site.send()
    receive(site.store, 1, at=site.clock.now())
    site.look(10_000)
    assert site.requests()[0].is_open
    assert not site.told.alerts


def test_one_that_could_never_be_sent_expires_too(site: Site) -> None:
    site.ask()
    site.look(606)
    assert site.requests()[0].state is RequestState.EXPIRED
    entry = site.store.outbound.next()
    assert entry is not None
    assert not site.store.outbound.begin(site.fence, entry, after=0, now=T0)


def test_it_is_asked_again_under_a_new_number_so_often_and_no_more(store: SqlStore) -> None:
    site = Site(store, resend=2)
    site.ask()
    for round_ in range(1, 5):
        site.look(round_ * 700)
    found = site.requests()
    assert [one.seqn for one in found] == ["000001", "000002", "000003"]
    assert {one.state for one in found} == {RequestState.EXPIRED}
    assert [one.resent for one in found] == [0, 1, 2]
    assert {one.requested_by for one in found} == {"jl"}
    assert "asked again as n1" in site.told.texts[0]
    assert (len(site.told.texts), site.woken) == (3, 2)


def test_who_lost_the_lead_expires_nothing(site: Site) -> None:
    site.ask()
    lead(site.store, "other")
    with pytest.raises(Fenced):
        site.look(700)
    assert site.requests()[0].is_open


def test_a_doubled_row_is_told_once(site: Site) -> None:
    mailbox = MemoryOutMailbox()
    watch = DoubledWatch(site.store.outbound, mailbox, site.clock, site.told)
    site.ask()
    entry = site.store.outbound.next()
    assert entry is not None
    site.send(times=2)
    mailbox.rows = {1: entry.text}
    watch.step()
    assert not site.told.alerts
    mailbox.rows[2] = entry.text
    watch.step()
    watch.step()
    assert site.told.alerts == ["request-doubled"]


@pytest.mark.parametrize(("after_s", "told"), [(60, ["request-doubled"]), (3_700, [])])
def test_a_row_that_doubles_a_closed_request_is_told_for_an_hour(
    site: Site, after_s: float, told: list[str]
) -> None:
    mailbox = MemoryOutMailbox()
    watch = DoubledWatch(site.store.outbound, mailbox, site.clock, site.told)
    site.ask()
    entry = site.store.outbound.next()
    assert entry is not None
    site.send(times=2)
    with site.store.requests.leader_transaction(site.fence) as transaction:
        for request in transaction.open_requests().values():
            transaction.close(request.closed(RequestState.DONE, None, now=site.clock.now()))
    mailbox.rows = {1: entry.text, 2: entry.text}
    site.clock.seconds = after_s
    watch.step()
    assert site.told.alerts == told


def daily(site: Site, *wanted: Wanted) -> DailyJob:
    duty = AskDaily(
        lambda local: [PlanWanted(local.date(), local.date()), *wanted],
        store=site.store.requests,
        fence=site.fence,
        rules=RULES,
        new_request_id=site.new_id,
        wake_sender=site.wake,
    )
    return DailyJob(
        "daily-plan",
        duty,
        schedule=Daily(time(17), ZONE),
        store=site.store.jobs,
        clock=site.clock,
        fence=site.fence,
        telemetry=site.told,
    )


def run(job: DailyJob, *, steps: int = 20) -> None:
    for _ in range(steps):
        if job.step() > 1:
            return


def test_the_clock_asks_once_a_day(site: Site) -> None:
    run(daily(site, ReferenceWanted("ARPT")))
    run(daily(site, ReferenceWanted("ARPT")))
    asked = site.requests()
    assert [one.wanted for one in asked] == [PLAN, ReferenceWanted("ARPT")]
    assert {one.requested_by for one in asked} == {"schedule 2026-09-03"}
    site.clock.seconds = 86_400
    run(daily(site))
    newest = site.requests()[-1]
    assert newest.wanted == PlanWanted(date(2026, 9, 4), date(2026, 9, 4))


def test_a_run_that_was_broken_off_asks_for_the_rest_only(site: Site) -> None:
    references = [ReferenceWanted("ARPT"), ReferenceWanted("ARLN")]
    broken = daily(site, *references)
    broken.step()
    broken.step()
    assert 0 < len(site.requests()) < 3
    run(daily(site, *references))
    assert len(site.requests()) == 3
    assert all(one.is_open for one in site.requests())
