"""Every message of the feed decoded and decided, against what the feed promises of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import assert_never
from zoneinfo import ZoneInfo

import pytest
from defusedxml.ElementTree import fromstring

from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.demo.departures import DAY, TIMEZONE, published_day
from msgexchange.demo.feed import Feed, Send, build_feed, expected
from msgexchange.flight.decision import Applied, Outcome, Refused, Skipped
from msgexchange.flight.dynamic import UnknownFlight, decide_deletion, decide_operation
from msgexchange.flight.messages import (
    Body,
    Decoded,
    Deletion,
    Ignored,
    Malformed,
    Message,
    Meta,
    Operation,
    Plan,
    PlanKind,
    Rejected,
    Unsupported,
)
from msgexchange.flight.snapshot import decide_plan
from msgexchange.flight.state import Content, FlightState, FlightStatus
from msgexchange.ids import Flid, Identity, MailboxId
from msgexchange.lifecycle.identity import IdentityPolicy, identity_of
from msgexchange.lifecycle.states import MessageState

CATALOGUE = default_catalogue()
LIMITS = Limits()
ZONE = ZoneInfo(TIMEZONE)
CAUSE = MailboxId(1)
Verdict = tuple[MessageState, str, int]


def decoded(sent: Send) -> Decoded:
    return decode(sent.text, CATALOGUE, LIMITS, ZONE)


@dataclass
class Fold:
    """Every message in order over an empty store, as the pump would."""

    flights: dict[Flid, FlightState] = field(default_factory=dict)
    identities: set[Identity] = field(default_factory=set)
    newest_plans: dict[date, datetime] = field(default_factory=dict)

    def verdict(self, message: Decoded) -> Verdict:
        if isinstance(message, Malformed):
            return MessageState.DEAD, "MALFORMED", 0
        meta = message.meta
        identity = identity_of(
            sndr=meta.sndr,
            type_=meta.type,
            styp=meta.styp,
            seqn=meta.seqn,
            sent_at=meta.sent_at,
            policy=IdentityPolicy(),
        )
        if identity in self.identities:
            return MessageState.SKIPPED, "duplicate-of", 0
        self.identities.add(identity)
        return self.routed(message)

    def routed(self, message: Message) -> Verdict:
        match message.content:
            case Ignored():
                return MessageState.SKIPPED, "ignored", 0
            case Unsupported():
                return MessageState.DEAD, "EXHAUSTED", 0
            case Rejected():
                return MessageState.DEAD, "PROTOCOL", 0
            case Plan() | Operation() | Deletion() as body:
                return self.applied(self.decided(body, message.meta))
            case other:
                pytest.fail(f"nobody planned {other}")

    def decided(self, body: Body, meta: Meta) -> Outcome:
        match body:
            case Plan():
                return self.planned(body, meta)
            case Operation():
                return decide_operation(
                    self.flights,
                    body,
                    cause=CAUSE,
                    unknown=UnknownFlight.SKIP,
                    last_versions={},
                )
            case Deletion():
                return decide_deletion(self.flights, body, cause=CAUSE)
            case _:
                assert_never(body)

    def planned(self, plan: Plan, meta: Meta) -> Outcome:
        assert meta.sent_at is not None
        outcome = decide_plan(
            self.flights,
            plan,
            cause=CAUSE,
            sent_at=meta.sent_at,
            newest_sent_at=self.newest_plans,
            last_versions={},
        )
        if isinstance(outcome, Applied) and plan.kind is PlanKind.DNLD:
            self.newest_plans.update(dict.fromkeys(plan.operation_days, meta.sent_at))
        return outcome

    def applied(self, outcome: Outcome) -> Verdict:
        match outcome:
            case Applied(decisions):
                self.flights.update({made.after.flid: made.after for made in decisions})
                return MessageState.SUCCEEDED, "", len(decisions)
            case Skipped(reason):
                return MessageState.SKIPPED, reason.partition(":")[0], 0
            case Refused():
                return MessageState.DEAD, "PROTOCOL", 0
            case _:
                assert_never(outcome)

    def count(self, status: FlightStatus) -> int:
        return sum(flight.status is status for flight in self.flights.values())


def delay_min(content: Content) -> int:
    """The minutes of all causes together; 0 without any."""
    total = 0
    for cause in content.get("DELY", ()):
        assert isinstance(cause, Mapping)
        total += int(str(cause["DURA"]))
    return total


@pytest.fixture(scope="module")
def feed() -> Feed:
    return build_feed(published_day())


@pytest.fixture(scope="module")
def folded(feed: Feed) -> Fold:
    fold = Fold()
    for sent in feed.messages:
        fold.verdict(decoded(sent))
    return fold


@pytest.mark.parametrize("messages_max", [None, 300, 1_500])
def test_every_message_ends_as_the_feed_promises(messages_max: int | None) -> None:
    feed = build_feed(published_day(), messages_max=messages_max)
    fold = Fold()
    for place, sent in enumerate(feed.messages):
        promised = (sent.state, sent.reason, sent.flights)
        assert fold.verdict(decoded(sent)) == promised, (place, sent.text[:500])
    outcome = expected(feed)
    assert fold.count(FlightStatus.ACTIVE) == outcome.flights_active
    assert fold.count(FlightStatus.DELETED) == outcome.flights_deleted


def test_what_is_applied_has_no_unknown_name_and_no_unreadable_time(feed: Feed) -> None:
    for sent in feed.messages:
        if sent.state is MessageState.SUCCEEDED:
            message = decoded(sent)
            assert isinstance(message, Message)
            assert message.unknown == (), sent.text[:500]
            assert message.unreadable_times == (), sent.text[:500]
            assert message.meta.kind == sent.kind


def test_a_flight_that_left_past_midnight_stays_in_its_operation_day(folded: Fold) -> None:
    assert {flight.operation_day for flight in folded.flights.values()} == {DAY}


def test_the_day_ends_with_the_published_actual_times_and_delays(folded: Fold) -> None:
    for departure in published_day():
        content = folded.flights[departure.flid].content
        assert ("CNCL" in content) is (departure.left is None)
        if departure.left is not None:
            assert content["ACTM"] == f"{departure.left:%d}NOV13{departure.left:%H%M}"
        reported_min = departure.delay_min if departure.delay_min >= 15 else 0
        assert delay_min(content) == reported_min


def test_special_characters_and_chinese_arrive_as_they_were_meant(feed: Feed) -> None:
    remarks = {
        fromstring(sent.text).findtext("FLOP/RMRK", "")
        for sent in feed.messages
        if sent.kind == "FLOP/RMRK" and sent.state is MessageState.SUCCEEDED
    }
    assert "航班取消 <cancelled>, see desk & app" in remarks
    assert any(remark.startswith("登机口变更 → ") for remark in remarks)


def test_a_cancelled_flight_gives_its_gate_and_counters_back(feed: Feed) -> None:
    groups = {"GTDT": "GTNO", "CKDT": "CKNO"}
    cleared = dict.fromkeys(groups, 0)
    for sent in feed.messages:
        styp = sent.kind.removeprefix("FLOP/")
        if styp in groups and sent.state is MessageState.SUCCEEDED:
            numbers = [
                item.get(groups[styp]) for item in fromstring(sent.text).findall(f"FLOP/{styp}")
            ]
            assert numbers in (["0"], [str(place + 1) for place in range(len(numbers))])
            cleared[styp] += numbers == ["0"]
    assert cleared == {"GTDT": 35, "CKDT": 35}


def test_several_flights_may_stand_in_one_message(feed: Feed) -> None:
    assert [sent.kind for sent in feed.messages if sent.flights == 4] == ["FLOP/RMRK"] * 3
