from datetime import UTC, datetime, timedelta

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.head_of_line import Idle, WaitUntil, Work, next_step
from msgexchange.lifecycle.states import InboxEntry, MessageState

T0 = datetime(2026, 9, 3, 10, tzinfo=UTC)


def waiting(id_: int, *, until: datetime | None = None, size: int = 100) -> InboxEntry:
    return InboxEntry(
        message_id=MailboxId(id_),
        state=MessageState.PENDING if until is None else MessageState.FAILED,
        identity=None,
        attempts=0 if until is None else 1,
        next_attempt_at=until,
        processing_started_at=None,
        received_at=T0,
        text_bytes=size,
        traceparent=None,
    )


def ids(step: object) -> list[int]:
    assert isinstance(step, Work)
    return [entry.message_id for entry in step.entries]


def test_an_empty_line_is_idle() -> None:
    assert next_step([], now=T0, text_bytes_max=1000) == Idle()


def test_a_failed_head_blocks_the_line_until_its_backoff_ends() -> None:
    due_at = T0 + timedelta(seconds=4)
    line = [waiting(7, until=due_at), waiting(8)]
    assert next_step(line, now=T0, text_bytes_max=1000) == WaitUntil(line[0], due_at)
    assert ids(next_step(line, now=due_at, text_bytes_max=1000)) == [7, 8]


def test_a_batch_ends_before_a_message_that_backs_off() -> None:
    line = [waiting(7), waiting(8, until=T0 + timedelta(seconds=1)), waiting(9)]
    assert ids(next_step(line, now=T0, text_bytes_max=1000)) == [7]


def test_a_batch_holds_no_more_text_than_its_bound_but_always_one_message() -> None:
    line = [waiting(7, size=900), waiting(8, size=100), waiting(9, size=1)]
    assert ids(next_step(line, now=T0, text_bytes_max=1000)) == [7, 8]
    assert ids(next_step(line, now=T0, text_bytes_max=10)) == [7]
