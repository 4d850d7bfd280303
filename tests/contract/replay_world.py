"""A line with reserved ids, a decoder that can be mended, and the desk where people replay."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count

from store_builders import receive

from fakes.line import Line, decode_or_die
from msgexchange.flight.messages import Decoded
from msgexchange.ids import MailboxId
from msgexchange.invariants.checker import violations
from msgexchange.invariants.observation import Observation
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.letters import LetterDesk
from msgexchange.pipeline.replay import ReplayOrders
from msgexchange.pipeline.replaying import Preflight, ReplayDesk
from msgexchange.ports import LateRow, LetterQuery, ReplayOrder
from msgexchange.store.sql_store import SqlStore


@dataclass
class Site:
    """``broken``: texts that hold one of these words make the decoder raise."""

    store: SqlStore
    broken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.line = Line(self.store, decode=self.decode)
        self.texts: dict[int, str] = {}
        """What was ever said, also once the mailbox is purged."""
        self.desk = self.desk_of("o")
        self.letters = LetterDesk(self.store.letters, decode=self.decode, now=self.line.clock.now)
        self.orders = ReplayOrders(
            store=self.store.replays,
            mailbox=self.line.mailbox,
            clock=self.line.clock,
            decode=self.decode,
            fence=self.line.fence,
            rules=self.line.rules,
            telemetry=self.line.told,
            text_bytes_max=1 << 20,
            wake_delivery=lambda: None,
            log_snapshot=self.store.pump.log_snapshot,
        )

    def desk_of(self, name: str) -> ReplayDesk:
        """A desk of its own, as on another host."""
        numbers = count(1)
        return ReplayDesk(
            self.store.replays,
            self.line.mailbox,
            decode=self.decode,
            rules=self.line.rules,
            text_bytes_max=1 << 20,
            now=self.line.clock.now,
            new_order_id=lambda: f"{name}{next(numbers)}",
        )

    def decode(self, text: str) -> Decoded:
        if any(word in text for word in self.broken):
            raise RecursionError("too deep for me")
        return decode_or_die(text)

    def take(self, id_: int, text: str) -> None:
        """The message comes in and is worked on to its end."""
        self.line.mailbox.rows[id_] = self.texts[id_] = text
        receive(self.store, id_, at=self.line.clock.now())
        self.line.clock.seconds += 1
        self.line.run(seconds=60)

    def late(self, id_: int, text: str) -> None:
        """A row that came after W had passed its id."""
        self.line.mailbox.rows[id_] = self.texts[id_] = text
        late = LateRow(
            message_id=MailboxId(id_),
            text_bytes=len(text.encode()),
            text=text,
            error="came after W",
        )
        self.store.gaps.record_looks(
            self.line.fence,
            looked=[],
            written=[],
            late=[late],
            dies=True,
            marks=True,
            now=self.line.clock.now(),
        )

    def plan(self, *ids: int) -> Preflight:
        return self.desk.plan([MailboxId(id_) for id_ in ids])

    def run(self, token: str | None, *, allow_regression: bool = False) -> ReplayOrder:
        """Order it, and let the leader carry it out."""
        assert token is not None
        order = self.desk.order(token, by="jl", reason="mended", allow_regression=allow_regression)
        return self.carried_out(order)

    def carried_out(self, order: ReplayOrder) -> ReplayOrder:
        self.line.clock.seconds += 1
        while self.orders.carry_out_next():
            continue
        found = self.desk.look(order.order_id)
        assert found is not None
        return found

    def outcome(self, id_: int) -> str:
        view = self.line.message(id_)
        return view.state.value if view.error_class is None else view.error_class.value

    def broken_promises(self) -> list[str]:
        """Of all that the store alone shows; ids that nobody took are left out."""
        self.line.run(seconds=5)
        facts = self.store.evidence.facts()
        seen = Observation(
            store=facts,
            marks={MailboxId(id_): id_ in self.line.mailbox.marked for id_ in self.texts},
            decoded={
                fact.message_id: decode_or_die(self.texts[fact.message_id])
                for fact in facts.messages
                if fact.state is MessageState.SUCCEEDED
            },
            topics=None,
            drained=False,
        )
        found = violations(seen)
        del found["I10"]
        return [f"{name}: {one.text}" for name, broken in found.items() for one in broken]

    def archive(self, ids: Sequence[int]) -> None:
        """What may go to the archive goes."""
        self.line.run()
        now = self.line.clock.now() + timedelta(days=30)
        self.store.archive.archive(
            self.line.fence,
            after=MailboxId(0),
            ended_before=now,
            marks=False,
            limit=1_000,
            now=now,
        )
        archived = self.store.letters.find(_query(ids))
        assert all(letter.archived for letter in archived)


def _query(ids: Sequence[int]) -> LetterQuery:
    return LetterQuery(ids=[MailboxId(id_) for id_ in ids])
