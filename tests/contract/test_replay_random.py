"""Random sets of dead, late and skipped messages on random histories: predicted is what happens.

MSGEXCHANGE_SETS says how many sets; 1,000 are shown before a release.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from random import Random  # noqa: TID251 - seeded, the same every time
from typing import Any

import pytest
from replay_world import Site
from sqlalchemy import Engine

from factories import deletion, operation, plan, status, xml
from fakes.line import CATALOGUE, decode_or_die
from msgexchange.flight.messages import Deletion, Message, Operation, Plan
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.letters import NotDone
from msgexchange.pipeline.prediction import Prediction
from msgexchange.pipeline.replaying import Preflight
from msgexchange.ports import LetterQuery, ReplayOrder
from msgexchange.store.engine import cloned_in_memory
from msgexchange.store.sql_store import SqlStore

SETS = int(os.environ.get("MSGEXCHANGE_SETS", "100"))
SETS_OF_A_WORLD = 10
WORDS = ("BRD", "DEP", "DLY", "MENDME")
FLIDS = ("900", "901", "902", "903")
KINDS = (
    "plan",
    "plan",
    "old-plan",
    "unasked",
    "status",
    "status",
    "status",
    "gate",
    "gate",
    "deletion",
    "unknown",
    "reference",
    "reference",
    "malformed",
    "duplicate",
)


class History:
    """What a site goes through, and an account of its own of who said what last."""

    def __init__(self, store: SqlStore, random: Random) -> None:
        self.random = random
        self.site = Site(store, broken={"MENDME"})
        self.last: dict[tuple[str, str], int] = {}
        self.later: list[int] = []
        self.told: list[int] = []
        """Reference messages that were applied."""
        self.next_id = 1
        self.seen = {"done": 0, "refused": 0, "consented": 0, "back": 0, "messages": 0}
        self.outcomes: set[str] = set()

    def go_on(self) -> None:
        random = self.random
        for _ in range(random.randint(2, 6)):
            id_ = self.next_id
            self.next_id += 1
            if random.random() < 0.15:
                self.later.append(id_)
                continue
            before = self.flights()
            self.site.take(id_, self.text(id_))
            self.account(id_, before)
        if self.later and random.random() < 0.7:
            id_ = self.later.pop(0)
            self.site.late(id_, self.text(id_))
        if random.random() < 0.1:
            self.site.line.mailbox.rows.clear()
        if random.random() < 0.1:
            self.site.archive([])
        if random.random() < 0.1:
            letters = self.site.letters.find(LetterQuery())
            if letters:
                chosen = random.choice(letters).letter.message_id
                self.site.letters.discard([chosen], by="mk", reason="x")

    def text(self, id_: int) -> str:
        random = self.random
        flid, word = random.choice(FLIDS), random.choice(WORDS)
        at = f"2026090318{id_ // 60 % 60:02}{id_ % 60:02}"
        made: str
        match random.choice(KINDS):
            case "plan":
                flids = random.sample(FLIDS, random.randint(1, 3))
                extra = f"<RMRK>{word}</RMRK>" if random.random() < 0.5 else ""
                made = plan(*flids, seqn=id_, dttm=at, extra=extra)
            case "old-plan":
                made = plan(flid, seqn=id_, dttm="20260903170000", extra=f"<TERM>{word}</TERM>")
            case "unasked":
                made = plan(flid, seqn=id_, dttm=at, styp="RESP")
            case "status":
                made = status(flid, word, seqn=id_)
            case "gate":
                element = f'<GTDT GTNO="1"><GATE>{word}</GATE></GTDT>'
                made = operation(flid, element, styp="GTDT", seqn=id_)
            case "deletion":
                made = deletion(flid, seqn=id_)
            case "unknown":
                made = status(random.choice(["777", "778"]), word, seqn=id_)
            case "reference":
                act = random.choice(["ADD", "UPD", "DEL", "DNLD"])
                record = f"<CODE>{random.choice(('PEK', 'SHA'))}</CODE><NAME>{word}</NAME>"
                body = f"<ARPT><RCNT>1</RCNT><RECD>{record}</RECD></ARPT>"
                made = xml(body, type_="ARPT", styp=act, seqn=id_)
            case "duplicate" if self.site.texts:
                made = random.choice(list(self.site.texts.values()))
            case _:
                made = f"<MSG><META><SEQN>{id_}"
        return made

    def flights(self) -> Mapping[str, Mapping[str, Any]]:
        found = self.site.store.reads.flights(
            operation_day=None, status=None, after=None, limit=9_999
        )
        return {
            state.flid: {
                **state.content,
                "status": state.status.value,
                "operationDay": str(state.operation_day),
            }
            for state in found
        }

    def records(self) -> Mapping[str, Any]:
        found = self.site.store.reads.references("ARPT", after=None, limit=99)
        return {f"ARPT {one.key}": _plain(one.record) for one in found}

    def account(self, id_: int, before: Mapping[str, Mapping[str, Any]]) -> None:
        if self.site.line.message(id_).state is not MessageState.SUCCEEDED:
            return
        after = self.flights()
        for flid, fields in after.items():
            was = before.get(flid, {})
            for name in {*fields, *was}:
                if fields.get(name) != was.get(name):
                    self.last[flid, name] = id_
        self.said(id_)

    def said(self, id_: int) -> None:
        decoded = decode_or_die(self.site.texts[id_])
        assert isinstance(decoded, Message)
        match decoded.content:
            case Plan(flights=flights):
                for one in flights:
                    names = [command.name for command in one.commands]
                    for name in (*names, "status", "operationDay"):
                        self.last[one.flid, name] = id_
            case Operation(blocks=blocks):
                for block in blocks:
                    for command in block.commands:
                        self.last[block.flid, command.name] = id_
            case Deletion(flids=flids):
                for flid in flids:
                    self.last[flid, "status"] = id_
            case _:
                self.told.append(id_)

    def replay(self) -> None:
        random, site = self.random, self.site
        known = sorted(site.texts)
        dead = [one.letter.message_id for one in site.letters.find(LetterQuery())]
        skips = [one.letter.message_id for one in site.letters.find(LetterQuery(skipped=True))]
        among = sorted({*dead, *skips, *random.sample(known, min(2, len(known)))})
        wanted = random.sample(among, random.randint(1, len(among)))
        site.broken = set() if random.random() < 0.8 else {"MENDME"}
        try:
            seen = site.plan(*wanted)
            assert seen == site.plan(*wanted)
            if random.random() < 0.25:
                site.broken = {"MENDME"}
                self.go_on()
                site.broken = set()
            if seen.token is not None:
                self.order(seen)
        finally:
            site.broken = {"MENDME"}

    def order(self, seen: Preflight) -> None:
        site = self.site
        consents = self.random.random() < 0.5
        taken = [one for one in seen.predictions if one.refused is None]
        before, records, facts = self.flights(), self.records(), site.store.evidence.facts()
        acts = len(site.store.audit.acts(act="replay", limit=9_999))
        predicted_back = any(one.backwards for one in taken)
        now = site.plan(*(one.message_id for one in taken))
        same = [one.essence() for one in now.predictions] == [one.essence() for one in taken]
        try:
            order = site.run(seen.token, allow_regression=consents)
        except NotDone:
            assert predicted_back
            assert not consents
            assert site.store.evidence.facts() == facts
            self.seen["back"] += 1
            return
        assert len(site.store.audit.acts(act="replay", limit=9_999)) == acts + 1
        if not (order.outcome or "").startswith("done"):
            assert not same, order.outcome
            assert site.store.evidence.facts() == facts
            self.seen["refused"] += 1
            return
        assert same
        assert consents or not predicted_back
        self.seen["done"] += 1
        self.seen["consented"] += predicted_back
        self.seen["messages"] += len(taken)
        # Who it goes back behind may have changed since: that one said the same again.
        self.happened(order, now.predictions, before, records, len(facts.events))

    def happened(
        self,
        order: ReplayOrder,
        taken: Sequence[Prediction],
        before: Mapping[str, Mapping[str, Any]],
        records: Mapping[str, Any],
        events: int,
    ) -> None:
        """What was predicted is what is, and each goes back that the account says does."""
        site = self.site
        flights: dict[str, dict[str, Any]] = {flid: dict(was) for flid, was in before.items()}
        records = dict(records)
        newest_told = max(self.told, default=0)
        for one in taken:
            view = site.line.message(one.message_id)
            self.outcomes.add(view.state.value if view.error is None else view.error.split(":")[0])
            assert one.outcome == _said(view)
            for change in one.changes:
                if change.about.startswith("ARPT"):
                    assert records.get(change.about) == _plain(change.old)
                    records[change.about] = _plain(change.new)
                    back = newest_told if newest_told > one.message_id else None
                    assert (change.backwards and change.backwards.message_id) == back
                    continue
                last = self.last.get((change.about, change.field), 0)
                back = None if last < one.message_id else last
                assert (change.backwards and change.backwards.message_id) == back
                assert _plain(flights.get(change.about, {}).get(change.field)) == change.old
                flights.setdefault(change.about, {})[change.field] = change.new
                self.last[change.about, change.field] = one.message_id
            if view.state is MessageState.SUCCEEDED:
                self.said(one.message_id)
        now = {flid: _plain(fields) for flid, fields in self.flights().items()}
        assert now == {
            flid: {name: _plain(value) for name, value in fields.items() if value is not None}
            for flid, fields in flights.items()
        }
        assert self.records() == {key: one for key, one in records.items() if one is not None}
        new = site.store.evidence.facts().events[events:]
        assert [(event.target, event.type, event.flid) for event in new] == [
            event for one in taken for event in one.events
        ]
        ids = [event.message_id for event in new]
        assert ids == sorted(ids)
        [act] = [
            act
            for act in site.store.audit.acts(act="replay", limit=9_999)
            if act.subject == f"order {order.order_id}"
        ]
        assert act.outcomes == {one.message_id: f"{one.was} -> {one.outcome}" for one in taken}


def _said(view: Any) -> str:
    if view.state is MessageState.DEAD:
        return f"DEAD({view.error_class}): {view.error}"
    return "SUCCEEDED" if view.state is MessageState.SUCCEEDED else f"SKIPPED({view.error})"


def _plain(value: Any) -> Any:
    """As JSON has it."""
    match value:
        case tuple() | list():
            return [_plain(item) for item in value]
        case Mapping():
            return {name: _plain(item) for name, item in value.items()}
        case _:
            return value


@pytest.fixture
def worlds(memory_template: Engine) -> Iterator[Iterator[SqlStore]]:
    stores: list[SqlStore] = []

    def opened() -> Iterator[SqlStore]:
        while True:
            stores.append(
                SqlStore(cloned_in_memory(memory_template), CATALOGUE, nonce=count(1).__next__)
            )
            yield stores[-1]

    yield opened()
    for store in stores:
        store.close()


@pytest.mark.timeout(3_000)
def test_what_is_predicted_is_what_happens(worlds: Iterator[SqlStore]) -> None:
    total = {"done": 0, "refused": 0, "consented": 0, "back": 0, "messages": 0}
    outcomes: set[str] = set()
    for seed in range(SETS // SETS_OF_A_WORLD):
        history = History(next(worlds), Random(seed))
        history.go_on()
        try:
            for _ in range(SETS_OF_A_WORLD):
                history.go_on()
                history.replay()
            assert history.site.broken_promises() == []
        except Exception as broken:
            broken.add_note(f"seed {seed}")
            raise
        total = {name: amount + history.seen[name] for name, amount in total.items()}
        outcomes |= history.outcomes
        history.site.store.close()
    print(total, sorted(outcomes))  # noqa: T201 - figures, shown with -s
    assert all(total.values())
    assert outcomes >= {"SUCCEEDED", "duplicate-of", "no-match", "deleted"}
