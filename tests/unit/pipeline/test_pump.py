"""The pump on an in-memory store: one poisoned message costs nobody else anything."""

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from factories import T0, plan, status
from fakes.mailbox import MemoryMailbox
from fakes.steps import Told
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.flight.dynamic import UnknownFlight
from msgexchange.flight.messages import Decoded
from msgexchange.ids import Flid, MailboxId
from msgexchange.lifecycle.failure import FailurePolicy
from msgexchange.lifecycle.identity import IdentityPolicy
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.pipeline.fold import PumpRules
from msgexchange.pipeline.ingest import Ingest, IngestRules
from msgexchange.pipeline.process import Pump, PumpBounds
from msgexchange.ports import Batch, MessageFault, MessageView
from msgexchange.store.sql_store import SqlStore

CATALOGUE = default_catalogue()
ZONE = ZoneInfo("Asia/Shanghai")
POISON = "POISON"


@dataclass
class ManualClock:
    seconds: float = 0.0

    def now(self) -> datetime:
        return T0 + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def decode_or_die(text: str) -> Decoded:
    if POISON in text:
        raise RecursionError("too deep for me")
    return decode(text, CATALOGUE, Limits(), ZONE)


@dataclass
class Line:
    """Mailbox, store and pump, stepped by hand."""

    store: SqlStore
    mailbox: MemoryMailbox = field(default_factory=MemoryMailbox)
    clock: ManualClock = field(default_factory=ManualClock)
    told: Told = field(default_factory=Told)

    def __post_init__(self) -> None:
        fence = self.store.leader.take_lease("test", timedelta(hours=1))
        assert fence is not None
        self.store.intake.begin_after(0, by="test", now=T0)
        self.ingest = Ingest(
            store=self.store.intake,
            gaps=self.store.gaps,
            mailbox=self.mailbox,
            probe=None,
            clock=self.clock,
            fence=fence,
            rules=IngestRules(),
            telemetry=self.told,
            wake_pump=lambda: None,
        )
        self.pump = Pump(
            store=self.store.pump,
            mailbox=self.mailbox,
            clock=self.clock,
            decode=decode_or_die,
            fence=fence,
            rules=PumpRules(
                identity=IdentityPolicy(),
                failure=FailurePolicy(),
                unknown_flight=UnknownFlight.SKIP,
                accept_foreign=False,
                timezone="Asia/Shanghai",
                codec_version="1",
            ),
            bounds=PumpBounds(),
            telemetry=self.told,
            marks=True,
            wake_delivery=lambda: None,
        )
        # An idle turn: from here on heads share a commit.
        self.pump.step()

    def receive(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.mailbox.insert(text)
        while self.ingest.step() == 0:
            continue
        assert self.store.intake.state().watermark == len(self.mailbox.rows)

    def run(self, seconds: float = 0) -> None:
        """Step until nothing is due within ``seconds``."""
        end = self.clock.seconds + seconds
        while True:
            pause = self.pump.step()
            if self.clock.seconds + pause > end:
                return
            self.clock.seconds += pause
            if pause >= 1 and not self.store.pump.heads(1):
                return

    def message(self, id_: int) -> MessageView:
        view = self.store.reads.message(MailboxId(id_))
        assert view is not None
        return view

    def states(self) -> list[MessageState]:
        return [self.message(id_).state for id_ in sorted(self.mailbox.rows)]


@pytest.fixture
def line(memory_store: SqlStore) -> Line:
    return Line(memory_store)


def with_one_bad(bad: str, *, at: int, of: int) -> list[str]:
    texts = [plan("9001"), *(status("9001", f"S{n}", seqn=n) for n in range(2, of + 1))]
    texts[at - 1] = bad
    return texts


def test_a_message_that_cannot_be_decoded_is_charged_and_blocks_until_it_is_dead(
    line: Line,
) -> None:
    line.receive(with_one_bad(POISON, at=4, of=8))
    line.run()
    assert line.states() == [
        *[MessageState.SUCCEEDED] * 3,
        MessageState.FAILED,
        *[MessageState.PENDING] * 4,
    ]
    assert line.message(4).error_class is ErrorClass.INFRA
    line.run(seconds=20)
    dead = line.message(4)
    assert (dead.state, dead.error_class, dead.last_cause, dead.attempts) == (
        MessageState.DEAD,
        ErrorClass.EXHAUSTED,
        ErrorClass.INFRA,
        5,
    )
    assert [failure.attempt for failure in dead.failures] == [1, 2, 3, 4, 5]
    assert line.states().count(MessageState.SUCCEEDED) == 7
    assert line.mailbox.marked == set(range(1, 9))


def test_a_row_the_mailbox_cannot_read_is_found_and_charged_alone(line: Line) -> None:
    line.receive(with_one_bad("?", at=3, of=6))
    line.mailbox.unreadable = {3}
    line.run(seconds=20)
    assert line.message(3).state is MessageState.DEAD
    assert line.message(3).attempts == 5
    assert "cannot decode" in (line.message(3).error or "")
    assert line.states().count(MessageState.SUCCEEDED) == 5


def test_a_message_the_store_refuses_is_found_by_halving_and_charged_alone(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    transaction = line.store.pump.transaction

    @contextmanager
    def refusing(fence: Any) -> Any:
        with transaction(fence) as opened:
            commit = opened.commit_batch

            def commit_batch(batch: Batch, **named: Any) -> None:
                tries.append(len(batch.messages))
                applied = [m for m in batch.messages if m.state is MessageState.SUCCEEDED]
                if any(m.message_id == 37 for m in applied):
                    raise MessageFault("value out of range")
                commit(batch, **named)

            monkeypatch.setattr(opened, "commit_batch", commit_batch)
            yield opened

    monkeypatch.setattr(line.store.pump, "transaction", refusing)
    line.receive([plan("9001"), *(status("9001", f"S{n}", seqn=n) for n in range(2, 51))])
    line.run(seconds=40)
    assert line.message(37).state is MessageState.DEAD
    assert line.message(37).last_cause is ErrorClass.INFRA
    assert line.states().count(MessageState.SUCCEEDED) == 49
    assert line.store.reads.flight(Flid("9001")) is not None
    first_round = tries[: tries.index(1)]
    assert first_round[0] == 50
    assert len(first_round) <= 8


def test_the_record_of_a_take_over_survives_a_retry(line: Line) -> None:
    rejected = status("9001", "X", seqn=5).replace("<STAT>X</STAT>", "")
    inexpressible = status("9001", "X", seqn=5).replace("X", "<A>X</A>")
    line.receive([plan("9001"), rejected, inexpressible])
    line.run(seconds=20)
    assert line.message(2).error_class is ErrorClass.PROTOCOL
    taken = line.message(3)
    assert (taken.state, taken.note) == (MessageState.DEAD, "supersedes:2")


def test_growing_backlog_shares_commits_up_to_two_hundred_messages(line: Line) -> None:
    line.receive([plan("9001"), *(status("9001", f"S{n}", seqn=n) for n in range(2, 601))])
    line.run()
    assert set(line.states()) == {MessageState.SUCCEEDED}
    flight = line.store.reads.flight(Flid("9001"))
    assert flight is not None
    assert (flight.version, flight.content["STAT"]) == (600, "S600")
    assert line.mailbox.reads <= 6
