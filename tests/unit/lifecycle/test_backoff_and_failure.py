from datetime import UTC, datetime, timedelta

import pytest

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.breaker import tripped
from msgexchange.lifecycle.failure import Exhaust, FailurePolicy, Retry, charge
from msgexchange.lifecycle.states import InboxEntry, MessageState
from msgexchange.lifecycle.supervision import GiveUp, RestartIn, RestartPolicy, after_failure

T0 = datetime(2026, 9, 3, 10, tzinfo=UTC)


def entry(attempts: int = 0) -> InboxEntry:
    return InboxEntry(
        message_id=MailboxId(7),
        state=MessageState.FAILED if attempts else MessageState.PENDING,
        identity=None,
        attempts=attempts,
        next_attempt_at=None,
        processing_started_at=None,
        received_at=T0,
        text_bytes=10,
        traceparent=None,
    )


def test_waits_double_from_one_second_and_stop_at_the_cap() -> None:
    waits = [Backoff().after(n).total_seconds() for n in range(1, 10)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_message_dies_at_the_fifth_charged_failure_and_not_before() -> None:
    policy = FailurePolicy()
    fourth = charge(entry(3), started_at=T0, now=T0, policy=policy, hopeless=False)
    assert fourth == Retry(4, T0 + timedelta(seconds=8))
    fifth = charge(entry(4), started_at=T0, now=T0, policy=policy, hopeless=False)
    assert fifth == Exhaust(5)


@pytest.mark.parametrize(("attempts", "dies"), [(0, False), (1, True), (2, True)])
def test_past_the_head_deadline_only_a_second_failure_kills(attempts: int, dies: bool) -> None:
    late = T0 + timedelta(minutes=10)
    verdict = charge(
        entry(attempts), started_at=T0, now=late, policy=FailurePolicy(), hopeless=False
    )
    assert isinstance(verdict, Exhaust) is dies


def test_a_kind_exhausted_before_gets_one_attempt() -> None:
    verdict = charge(entry(0), started_at=T0, now=T0, policy=FailurePolicy(), hopeless=True)
    assert verdict == Exhaust(1)


def test_a_breaker_remembers_since_when_and_waits_at_most_16_seconds() -> None:
    breaker = None
    waits = []
    for second in range(7):
        breaker = tripped(
            breaker, dependency="mailbox", reason="refused", now=T0 + timedelta(seconds=second)
        )
        waits.append(breaker.pause.total_seconds())
    assert breaker is not None
    assert breaker.since == T0
    assert waits == [1, 2, 4, 8, 16, 16, 16]


def test_another_dependency_starts_its_own_outage() -> None:
    first = tripped(None, dependency="mailbox", reason="refused", now=T0)
    second = tripped(first, dependency="store", reason="refused", now=T0 + timedelta(seconds=9))
    assert (second.since, second.failures) == (T0 + timedelta(seconds=9), 1)


def test_restarts_back_off_and_a_quiet_minute_starts_the_count_anew() -> None:
    policy = RestartPolicy()

    def pause(*failed_at_s: float) -> float:
        verdict = after_failure(failed_at_s, policy)
        assert isinstance(verdict, RestartIn)
        return verdict.pause.total_seconds()

    assert [pause(*range(n)) for n in range(1, 7)] == [1, 2, 4, 8, 16, 16]
    assert pause(0, 1, 2, 62) == 1
    assert pause(0, 1, 2, 61) == 8


def test_more_failures_than_allowed_within_the_window_give_up() -> None:
    policy = RestartPolicy(restarts_max=3, window=timedelta(seconds=10))
    assert isinstance(after_failure([0, 1, 2], policy), RestartIn)
    assert after_failure([0, 1, 2, 3], policy) == GiveUp(4)
    assert isinstance(after_failure([0, 1, 2, 13], policy), RestartIn)
