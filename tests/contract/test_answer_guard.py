"""Which answers are applied, and what they do to their request: in one commit, on each store."""

from dataclasses import replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import pytest

from factories import T0, plan, xml
from fakes.line import CATALOGUE, Line
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.flight.messages import Decoded
from msgexchange.ids import Flid, RequestId
from msgexchange.lifecycle.answer import AnswerPolicy, MatchBy
from msgexchange.lifecycle.request import PlanWanted, ReferenceWanted, Request, RequestState, Wanted
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.asking import AskingRules, Order, ask
from msgexchange.store.sql_store import SqlStore

ZONE = ZoneInfo("Asia/Shanghai")
DAY = date(2026, 9, 3)
ONE = PlanWanted(DAY, DAY)
THREE = PlanWanted(DAY, DAY + timedelta(days=2))
KIND = AnswerPolicy(match=MatchBy.KIND)
RULES = AskingRules(sender="MSGX", zone=ZONE, reference_types={"ARPT"})
SUCCEEDED, SKIPPED = MessageState.SUCCEEDED, MessageState.SKIPPED
NOW = "20260903180010"
"""The airport's time soon after T0."""
ECHOING = replace(
    CATALOGUE, envelope=replace(CATALOGUE.envelope, answer_echo="RQSN", error_echo="RQSN")
)


def decode_echo(text: str) -> Decoded:
    return decode(text, ECHOING, Limits(), ZONE)


def line_of(store: SqlStore, policy: AnswerPolicy = KIND, *, echoes: bool = False) -> Line:
    if echoes:
        return Line(store, answers=policy, decode=decode_echo)
    return Line(store, answers=policy)


def asked(line: Line, id_: str = "r1", wanted: Wanted = ONE, *, sent: str = "sent") -> None:
    """A request that is registered, being sent, or sent."""
    order = Order(request_id=RequestId(id_), by="jl", reason=None, at=line.clock.now())
    ask(line.store.requests, wanted, order, RULES)
    while sent != "registered":
        entry = line.store.outbound.next()
        assert entry is not None
        if entry.request.request_id != id_:
            line.store.outbound.cancel(line.fence, entry, "replaced")
            continue
        line.store.outbound.begin(line.fence, entry, after=0, now=line.clock.now())
        if sent == "sent":
            line.store.outbound.sent(line.fence, entry, 1, now=line.clock.now())
        return


def request(line: Line, id_: str = "r1") -> Request:
    found = line.store.requests.recent(every=True, limit=99)
    return {one.request_id: one for one in found}[RequestId(id_)]


def answered(line: Line, *texts: str) -> None:
    line.receive(texts)
    line.run()


def resp(*flids: str, seqn: int = 1, dttm: str = NOW, day: str = "03SEP26") -> str:
    return plan(*flids, seqn=seqn, styp="RESP", dttm=dttm, day=day)


def airports(seqn: int = 1, dttm: str = NOW) -> str:
    body = "<ARPT><RCNT>1</RCNT><RECD><CODE>PEK</CODE></RECD></ARPT>"
    return xml(body, type_="ARPT", styp="RESP", seqn=seqn, dttm=dttm)


def with_echo(text: str, seqn: str) -> str:
    return text.replace("</META>", f"<RQSN>{seqn}</RQSN></META>")


def why(line: Line, id_: int = 1) -> str:
    return str(line.message(id_).error)


def test_an_answer_is_applied_and_ends_its_request_in_one_commit(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    answered(line, resp("1"))
    assert line.states() == [SUCCEEDED]
    done = request(line)
    assert (done.state, done.answer_message_id, done.matched_by) == (RequestState.DONE, 1, "kind")
    assert done.days_done == {DAY}
    assert store.reads.flight(Flid("1")) is not None


def test_an_approximate_match_is_audited_and_shown(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    answered(line, resp("1"))
    assert line.message(1).note == "answers:r1 (kind, approximate)"
    acts = store.audit.acts(act="answer-match", limit=9)
    assert [(act.by, act.subject) for act in acts] == [("msgexchange", "request r1")]


def test_nobody_asked_so_nothing_is_touched(store: SqlStore) -> None:
    line = line_of(store)
    answered(line, resp("1"), airports(seqn=2))
    assert line.states() == [SKIPPED, SKIPPED]
    assert why(line).startswith("no-open-request: nobody has asked for plan")
    assert store.reads.flight(Flid("1")) is None
    assert line.told.alerts == ["skipped-no-open-request"] * 2


def test_a_request_that_is_not_sent_yet_has_no_answer(store: SqlStore) -> None:
    line = line_of(store)
    asked(line, sent="registered")
    answered(line, resp("1"))
    assert "not been sent yet" in why(line)
    assert request(line).state is RequestState.REGISTERED


def test_an_answer_may_overtake_our_own_word(store: SqlStore) -> None:
    line = line_of(store)
    asked(line, sent="sending")
    answered(line, resp("1"))
    assert request(line).state is RequestState.DONE
    entry = store.outbound.next()
    assert entry is not None
    store.outbound.sent(line.fence, entry, 7, now=line.clock.now())
    assert (request(line).state, request(line).outbound_id) == (RequestState.DONE, 7)
    assert store.outbound.next() is None


def test_the_second_copy_of_an_answer_is_nobodys(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    answered(line, resp("1", seqn=1), resp("2", seqn=2), resp("1", seqn=1))
    assert line.states() == [SUCCEEDED, SKIPPED, SKIPPED]
    assert why(line, 2).startswith("no-open-request")
    assert why(line, 3) == "duplicate-of:1"
    assert store.reads.flight(Flid("2")) is None


def test_an_answer_of_another_kind_answers_nothing(store: SqlStore) -> None:
    line = line_of(store)
    asked(line, wanted=ReferenceWanted("ARPT"))
    answered(line, resp("1"), airports(seqn=2))
    assert line.states() == [SKIPPED, SUCCEEDED]
    assert request(line).state is RequestState.DONE


def test_an_older_or_unreadable_answer_is_refused(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    answered(line, resp("1", dttm="20260903175700"), resp("1", seqn=2, dttm="yesterday"))
    assert "older than the request" in why(line, 1)
    assert "unreadable" in why(line, 2)
    assert request(line).state is RequestState.SENT


@pytest.mark.parametrize("seconds", [-90, 90])
def test_clocks_that_are_90_s_apart_do_no_harm(store: SqlStore, seconds: int) -> None:
    line = line_of(store)
    asked(line)
    said = (T0 + timedelta(seconds=seconds)).astimezone(ZONE)
    answered(line, resp("1", dttm=f"{said:%Y%m%d%H%M%S}"))
    assert line.states() == [SUCCEEDED]


@pytest.mark.parametrize("form", ["%Y%m%d%H%M", "%d%b%y%H%M"])
def test_a_time_to_the_minute_is_compared_to_the_minute(store: SqlStore, form: str) -> None:
    line = line_of(store, replace(KIND, clock_tolerance=timedelta()))
    line.clock.seconds = 50
    asked(line)
    said = line.clock.now().astimezone(ZONE)
    answered(line, resp("1", dttm=said.strftime(form).upper()))
    assert line.states() == [SUCCEEDED]


def test_an_answer_that_waited_behind_a_blocked_head_is_not_late(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    line.clock.seconds = 500
    line.receive([xml("<NOPE/>", type_="NOPE", styp="", seqn=9), resp("1")])
    line.pump.step()
    line.clock.seconds = 1000
    line.run(600)
    assert line.message(2).state is SUCCEEDED
    assert request(line).state is RequestState.DONE


def test_an_answer_that_was_taken_in_late_is_refused(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    line.clock.seconds = 601
    answered(line, resp("1", dttm="20260903181000"))
    assert why(line).startswith("no-open-request: late: request r1")


def test_several_days_answered_in_several_messages(store: SqlStore) -> None:
    line = line_of(store)
    asked(line, wanted=THREE)
    answered(line, resp("1", seqn=1, day="04SEP26"), resp("2", seqn=2, day="03SEP26"))
    assert line.states() == [SUCCEEDED, SUCCEEDED]
    half = request(line)
    assert (half.state, half.answer_message_id) == (RequestState.SENT, 2)
    assert half.days_done == {DAY, DAY + timedelta(days=1)}
    answered(line, resp("3", seqn=3, day="05SEP26"))
    assert request(line).state is RequestState.DONE


def test_a_day_nobody_asked_for_keeps_the_whole_answer_out(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    answered(line, resp("1", day="04SEP26"))
    assert "2026-09-04 was not asked for" in why(line)
    assert request(line).is_open


def test_a_plan_that_is_refused_answers_nothing(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    answered(line, resp("1").replace("<RCNT>1", "<RCNT>2"))
    assert line.states() == [MessageState.DEAD]
    assert request(line).state is RequestState.SENT


def test_a_plan_without_any_flight_answers_nothing(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    answered(line, resp())
    assert line.states() == [MessageState.DEAD]
    assert request(line).answer_message_id is None


def test_a_newer_request_takes_the_answer(store: SqlStore) -> None:
    line = line_of(store)
    asked(line, "r1")
    asked(line, "r2")
    answered(line, resp("1"))
    assert request(line, "r1").state is RequestState.EXPIRED
    assert request(line, "r2").answer_message_id == 1


def test_by_echo_only_the_very_request_is_answered(store: SqlStore) -> None:
    line = line_of(store, AnswerPolicy(match=MatchBy.ECHO), echoes=True)
    asked(line)
    answered(
        line,
        resp("1", seqn=1),
        with_echo(resp("1", seqn=2), "000009"),
        with_echo(resp("1", seqn=3, dttm="whenever"), "000001"),
    )
    assert line.states() == [SKIPPED, SKIPPED, SUCCEEDED]
    assert line.message(3).note == "answers:r1 (echo)"
    assert request(line).matched_by == "echo"
    assert store.audit.acts(act="answer-match", limit=9) == []


def test_foreign_answers_are_let_in_for_a_cut_over_and_recorded(store: SqlStore) -> None:
    line = line_of(store, AnswerPolicy(accepts_foreign=True))
    answered(line, resp("1"), airports(seqn=2))
    assert line.states() == [SUCCEEDED, SUCCEEDED]
    assert [line.message(id_).note for id_ in (1, 2)] == ["foreign-request"] * 2


def error_message(seqn: int = 1, echo: str | None = None) -> str:
    text = xml("<EROR/>", type_="EROR", styp="", seqn=seqn, dttm=NOW)
    return text if echo is None else with_echo(text, echo)


def test_an_error_message_alerts_and_ends_a_request_only_by_its_echo(store: SqlStore) -> None:
    line = line_of(store, echoes=True)
    asked(line)
    answered(line, error_message(1), error_message(2, "000099"))
    assert request(line).state is RequestState.SENT
    answered(line, error_message(3, "000001"))
    failed = request(line)
    assert (failed.state, failed.error) == (
        RequestState.FAILED,
        "refused by the AODB: error message 3",
    )
    assert line.message(3).note == "fails:r1"
    assert why(line, 3) == "ignored:EROR"
    assert line.told.alerts == ["aodb-error"] * 3
    assert "names no open request" in line.told.texts[1]
    assert "refuses request r1" in line.told.texts[2]


def test_unasked_plans_need_no_request(store: SqlStore) -> None:
    line = line_of(store)
    asked(line)
    answered(line, plan("1", dttm=NOW))
    assert line.states() == [SUCCEEDED]
    assert request(line).state is RequestState.SENT
