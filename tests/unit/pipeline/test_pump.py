"""The pump on an in-memory store: one poisoned message costs nobody else anything."""

from contextlib import contextmanager
from typing import Any

import pytest

from factories import plan, status
from fakes.line import POISON, Line
from msgexchange.ids import Flid, MailboxId
from msgexchange.lifecycle.gap import MailboxRow
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.ports import Batch, MessageFault
from msgexchange.store.sql_store import SqlStore


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


def test_every_failure_line_says_class_attempts_next_attempt_message_and_trace(
    line: Line, memory_store: SqlStore
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    with memory_store.intake.transaction(None) as transaction:
        line.mailbox.rows[1] = POISON
        row = MailboxRow(MailboxId(1), len(POISON))
        parent = f"00-{trace}-b7ad6b7169203331-01"
        transaction.enqueue(row, now=line.clock.now(), traceparent=parent)
    line.receive([])
    line.run(seconds=20)
    told = line.told.lines_of("message.failed")
    assert [one["attempts"] for one in told] == [1, 2, 3, 4, 5]
    assert [one["error_class"] for one in told] == [ErrorClass.INFRA] * 4 + [ErrorClass.EXHAUSTED]
    assert [one["next_attempt_at"] is None for one in told] == [False] * 4 + [True]
    assert {(one["message_id"], one["trace_id"]) for one in told} == {(1, trace)}
    assert all(one["error"] for one in told)


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
