"""Every message of the feed judged by its text alone, against what the feed promises of it."""

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

import pytest
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from msgexchange.demo.departures import published_day
from msgexchange.demo.feed import Feed, Send, build_feed, expected
from msgexchange.lifecycle.states import MessageState

IGNORED = {"LDM", "REGN", "RSTA", "EROR"}
Verdict = tuple[MessageState, str, int]


def blocks_of(root: Element, type_: str) -> list[str]:
    return [block.findtext("FLID", "") for block in root.findall(type_)]


@dataclass
class Judge:
    """The rules of the wire contract on plain sets; knows nothing of how the feed is built."""

    active: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    identities: set[str] = field(default_factory=set)
    newest_plan: str = ""

    def verdict(self, text: str) -> Verdict:
        try:
            root = fromstring(text, forbid_dtd=True)
        except (ParseError, DefusedXmlException):
            return MessageState.DEAD, "MALFORMED", 0
        meta = {item.tag: item.text or "" for item in root.find("META") or ()}
        if not all(meta[name] for name in ("SNDR", "SEQN", "DTTM", "TYPE")):
            return MessageState.DEAD, "MALFORMED", 0
        identity = "|".join(meta[name] for name in ("SNDR", "TYPE", "STYP", "SEQN"))
        if identity in self.identities:
            return MessageState.SKIPPED, "duplicate-of", 0
        self.identities.add(identity)
        return self.routed(root, meta)

    def routed(self, root: Element, meta: dict[str, str]) -> Verdict:
        if meta["TYPE"] in IGNORED:
            return MessageState.SKIPPED, "ignored", 0
        if meta["TYPE"] == "SCHD":
            return self.plan(root, meta)
        if meta["TYPE"] in {"FLOP", "FDEL"}:
            return self.operation(root, meta)
        return MessageState.DEAD, "EXHAUSTED", 0

    def plan(self, root: Element, meta: dict[str, str]) -> Verdict:
        flids = [flight.findtext("FLID", "") for flight in root.findall("SCHD/FLGT")]
        assert int(root.findtext("SCHD/RCNT", "")) == len(flids) == len(set(flids))
        if meta["STYP"] == "DNLD":
            if meta["DTTM"] < self.newest_plan:
                return MessageState.SKIPPED, "stale-plan", 0
            self.newest_plan = meta["DTTM"]
        else:
            assert len(flids) == 1
        self.active.update(flids)
        return MessageState.SUCCEEDED, "", len(flids)

    def operation(self, root: Element, meta: dict[str, str]) -> Verdict:
        flids = blocks_of(root, meta["TYPE"])
        named = all(
            meta["TYPE"] == "FDEL" or block.find(meta["STYP"]) is not None
            for block in root.findall("FLOP")
        )
        if not flids or len(flids) != len(set(flids)) or not named:
            return MessageState.DEAD, "PROTOCOL", 0
        if self.deleted.intersection(flids):
            return MessageState.SKIPPED, "deleted", 0
        if not self.active.issuperset(flids):
            return MessageState.SKIPPED, "no-match", 0
        if "FDEL" in {meta["TYPE"], meta["STYP"]}:
            self.active.difference_update(flids)
            self.deleted.update(flids)
        return MessageState.SUCCEEDED, "", len(flids)


@pytest.fixture(scope="module")
def feed() -> Feed:
    return build_feed(published_day())


def promised(sent: Send) -> Verdict:
    return sent.state, sent.reason, sent.flights


@pytest.mark.parametrize("messages_max", [None, 300, 1_500])
def test_every_message_ends_as_the_feed_promises(messages_max: int | None) -> None:
    feed = build_feed(published_day(), messages_max=messages_max)
    judge = Judge()
    for place, sent in enumerate(feed.messages):
        assert judge.verdict(sent.text) == promised(sent), (place, sent.text[:500])
    outcome = expected(feed)
    assert len(judge.active) == outcome.flights_active
    assert len(judge.deleted) == outcome.flights_deleted


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
