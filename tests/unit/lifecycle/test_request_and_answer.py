"""Which answer is whose, when a request is over, how its counter wraps."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from msgexchange.ids import MailboxId, RequestId
from msgexchange.lifecycle.answer import (
    Answer,
    AnswerPolicy,
    Foreign,
    MatchBy,
    Matched,
    Unmatched,
    answered,
    judge_answer,
)
from msgexchange.lifecycle.request import (
    SCAN_COMMITS_WITHIN,
    ExpiryPolicy,
    PlanWanted,
    ReferenceWanted,
    Request,
    RequestState,
    Wanted,
    next_seqn,
    overdue,
    written_seqn,
)

SENT = datetime(2026, 9, 3, 10, 0, 30, tzinfo=UTC)
"""18:00:30 at the airport."""
DAY = date(2026, 9, 3)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
KIND = AnswerPolicy(match=MatchBy.KIND)
ECHO = AnswerPolicy(match=MatchBy.ECHO)
PLAN = PlanWanted(DAY, DAY)


def request(
    state: RequestState = RequestState.SENT,
    *,
    wanted: Wanted = PLAN,
    seqn: str = "000007",
) -> Request:
    begun = state is not RequestState.REGISTERED
    return Request(
        request_id=RequestId("r1"),
        wanted=wanted,
        state=state,
        seqn=seqn,
        requested_by="jl",
        created_at=SENT - timedelta(seconds=5),
        send_started_at=SENT if begun else None,
        sent_at=SENT + timedelta(seconds=1) if state is RequestState.SENT else None,
    )


def answer(
    said: str | None = "18:01:00",
    *,
    unit: timedelta = SECOND,
    days: tuple[date, ...] = (DAY,),
    echo: str | None = None,
    kind: str = "plan",
    received_at: datetime = SENT + timedelta(seconds=40),
) -> Answer:
    return Answer(
        kind=kind,
        days=frozenset(days),
        echo=echo,
        said_at=None if said is None else datetime.fromisoformat(f"2026-09-03T{said}"),
        said_unit=unit,
        received_at=received_at,
    )


def reason(given: Answer, of: Request | None, policy: AnswerPolicy = KIND) -> str | None:
    """Why it is not the request's; None if it is."""
    found = judge_answer(given, {} if of is None else {of.wanted.kind: of}, policy)
    return found.reason if isinstance(found, Unmatched) else None


def test_an_answer_of_the_kind_said_after_the_request_is_its_answer() -> None:
    sent = request()
    assert judge_answer(answer(), {"plan": sent}, KIND) == Matched(sent, MatchBy.KIND)


def test_an_answer_may_overtake_our_own_word_that_the_request_is_sent() -> None:
    assert reason(answer(), request(RequestState.SENDING)) is None


def test_what_was_not_sent_yet_has_no_answer() -> None:
    assert "not been sent" in str(reason(answer(), request(RequestState.REGISTERED)))


def test_nobody_asked_for_another_kind() -> None:
    sent = request(wanted=ReferenceWanted("ARPT"))
    assert "nobody has asked" in str(reason(answer(kind="reference:ARLN"), sent))
    assert reason(answer(days=(), kind="reference:ARPT"), sent) is None


@pytest.mark.parametrize(
    ("said", "unit", "fits"),
    [
        ("18:00:30", SECOND, True),
        ("17:58:30", SECOND, True),  # exactly the tolerance of 120 s
        ("17:58:29", SECOND, False),
        ("17:58:00", MINUTE, True),  # to the minute: the request was sent at 18:00
        ("17:57:00", MINUTE, False),
        ("23:59:59", SECOND, True),  # a clock that is ahead harms nobody
    ],
)
def test_clocks_may_differ_by_the_tolerance_at_the_coarser_unit(
    said: str, unit: timedelta, fits: bool
) -> None:
    why = reason(answer(said, unit=unit), request())
    assert (why is None) is fits
    assert fits or "older than the request" in str(why)


def test_an_unreadable_time_never_matches_by_kind() -> None:
    assert "unreadable" in str(reason(answer(None), request()))


def test_a_time_that_the_clocks_show_twice_is_taken_as_the_later_one() -> None:
    berlin = replace(KIND, zone=ZoneInfo("Europe/Berlin"), clock_tolerance=timedelta())
    began = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)  # 02:30 the second time
    sent = replace(request(), send_started_at=began, sent_at=began)
    given = replace(answer(), said_at=datetime(2026, 10, 25, 2, 31), received_at=began)
    assert reason(given, sent, berlin) is None


def test_days_nobody_asked_for_do_not_match() -> None:
    other = DAY + timedelta(days=1)
    assert "2026-09-04 was not asked for" in str(reason(answer(days=(DAY, other)), request()))


def test_lateness_counts_from_when_the_answer_was_taken_in() -> None:
    due = SENT + timedelta(seconds=1) + timedelta(minutes=10)
    assert reason(answer(received_at=due), request()) is None
    assert "late" in str(reason(answer(received_at=due + SECOND), request()))


def test_an_echo_is_exact_and_the_clock_of_the_other_side_does_not_matter() -> None:
    assert reason(answer(None, echo="000007"), request(), ECHO) is None
    assert "000008" in str(reason(answer(echo="000008"), request(), ECHO))
    assert "echoes no request" in str(reason(answer(), request(), ECHO))


def test_without_a_rule_no_answer_is_ours() -> None:
    assert "requests.match" in str(reason(answer(), request(), AnswerPolicy()))


def test_foreign_answers_are_known_as_such_where_they_are_let_in() -> None:
    cut_over = replace(KIND, accepts_foreign=True)
    assert judge_answer(answer(), {}, cut_over) == Foreign()
    sent = request()
    assert judge_answer(answer(), {"plan": sent}, cut_over) == Matched(sent, MatchBy.KIND)


def progress(of: Request, *days: date) -> Request:
    return answered(of, answer(days=days), by=MatchBy.KIND, cause=MailboxId(5), now=SENT)


def test_a_request_over_several_days_is_done_once_all_have_come() -> None:
    one, two, three = (DAY + timedelta(days=n) for n in range(3))
    sent = request(wanted=PlanWanted(one, three))
    first = progress(sent, two)
    assert first.is_open
    assert first.days_done == {two}
    assert progress(first, two).is_open
    last = progress(first, one, three)
    assert (last.state, last.finished_at, last.matched_by) == (RequestState.DONE, SENT, "kind")


def test_reference_data_is_done_with_its_first_answer() -> None:
    assert progress(request(wanted=ReferenceWanted("ARPT"))).state is RequestState.DONE


def test_nothing_expires_while_a_message_that_came_in_time_waits() -> None:
    policy, sent = ExpiryPolicy(timeout=timedelta(minutes=10)), request()
    due = SENT + timedelta(seconds=601)
    seen = due + SCAN_COMMITS_WITHIN
    for now, waiting, over in (
        (seen, None, False),
        (seen + SECOND, None, True),
        (seen + SECOND, due, False),
        (seen + SECOND, due + SECOND, True),
    ):
        assert overdue(sent, policy, now=now, oldest_waiting_at=waiting) is over


def test_time_runs_from_what_is_known_of_the_sending() -> None:
    timeout = timedelta(minutes=1)
    assert request().due_at(timeout) == SENT + timedelta(seconds=61)
    assert request(RequestState.SENDING).due_at(timeout) == SENT + timedelta(seconds=60)
    assert request(RequestState.REGISTERED).due_at(timeout) == SENT + timedelta(seconds=55)


def test_the_counter_has_six_digits_and_wraps_to_one() -> None:
    assert written_seqn(1) == "000001"
    assert next_seqn(999_998) == 999_999
    assert next_seqn(999_999) == 1


def test_impossible_days_are_no_request() -> None:
    with pytest.raises(ValueError, match="before the first"):
        PlanWanted(DAY, DAY - timedelta(days=1))
    with pytest.raises(ValueError, match="31 days"):
        PlanWanted(DAY, DAY + timedelta(days=31))
    assert len(PlanWanted(DAY, DAY + timedelta(days=30)).days) == 31
