"""What is known of a record before it is sent, and when an ordered target is due."""

from datetime import UTC, datetime, timedelta

import pytest

from msgexchange.flight.events import EventType
from msgexchange.ids import EventId, Flid, MailboxId
from msgexchange.pipeline.delivery import DeliveryRules, pause_of, refusal_of, window_of
from msgexchange.pipeline.records import record_bytes, record_of
from msgexchange.ports import OutboxEntry

NOW = datetime(2026, 9, 3, 10, tzinfo=UTC)
RULES = DeliveryRules(record_bytes_max=10_000)
IDLE = timedelta(seconds=5)


def entry(
    size: int = 10, *, id_: int = 1, attempts: int = 0, due: datetime | None = None
) -> OutboxEntry:
    return OutboxEntry(
        event_id=EventId(id_),
        nonce=1,
        type=EventType.NOTICE,
        partition_key="F" * 32,
        flid=Flid("F" * 32),
        message_id=MailboxId(2**62),
        state_version=2**62,
        operation_day=NOW.date(),
        payload=b"x" * size,
        attempts=attempts,
        next_attempt_at=due,
        traceparent="t" * 64,
        redelivery_of=EventId(2**62),
        previous_is_dead=True,
    )


@pytest.mark.parametrize("size", [0, 5_999, 6_000, 6_001, 9_000, 9_300, 9_500, 10_000, 20_000])
def test_a_record_is_refused_exactly_when_it_is_over_the_limit(size: int) -> None:
    tried = entry(size)
    is_over = record_bytes(record_of(tried, 1)) > RULES.record_bytes_max
    assert (refusal_of(tried, generation=1, rules=RULES) is not None) == is_over


def test_what_is_or_was_refused_never_shares_a_window() -> None:
    fine, large = entry(id_=1), entry(20_000, id_=2)
    tried = entry(id_=3, attempts=1)

    def window(*pending: OutboxEntry) -> list[int]:
        return [e.event_id for e in window_of(pending, generation=1, rules=RULES)]

    assert window(fine, large, tried) == [1]
    assert window(large, tried) == [2]
    assert window(tried, fine) == [3]


def test_an_ordered_target_waits_for_its_head_alone() -> None:
    soon = entry(due=NOW + timedelta(seconds=3))
    assert pause_of([], now=NOW, idle_poll=IDLE) == 5
    assert pause_of([soon, entry(id_=2)], now=NOW, idle_poll=IDLE) == 3
    assert pause_of([soon], now=NOW + timedelta(seconds=3), idle_poll=IDLE) is None
    assert pause_of([entry(), soon], now=NOW, idle_poll=IDLE) is None
