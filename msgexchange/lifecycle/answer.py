"""Which answer is which request's: by what it echoes, or by its kind (spec 5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TypeAlias
from zoneinfo import ZoneInfo

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.request import ExpiryPolicy, Request, RequestState


class MatchBy(StrEnum):
    """``echo``: the answer carries our SEQN, exact. ``kind``: same kind, time and days fit;
    approximate.
    """

    ECHO = "echo"
    KIND = "kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPolicy:
    """How a site's answers are matched; ``match`` None matches nothing.

    ``accepts_foreign``: an answer that is nobody's is applied all the same.
    """

    match: MatchBy | None = None
    accepts_foreign: bool = False
    clock_tolerance: timedelta = timedelta(seconds=120)
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("Asia/Shanghai"))
    expiry: ExpiryPolicy = field(default_factory=ExpiryPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What of an answer decides whose it is.

    ``said_at`` is its DTTM as naive airport-local time, None if unreadable, exact to
    ``said_unit``; ``received_at`` when we took it in.
    """

    kind: str
    days: frozenset[date]
    echo: str | None
    said_at: datetime | None
    said_unit: timedelta
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Matched:
    """The answer is this request's."""

    request: Request
    by: MatchBy


@dataclass(frozen=True, slots=True)
class Foreign:
    """Nobody here asked; it is applied because the site says so."""


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Not to be applied; the reason is for people."""

    reason: str


Verdict: TypeAlias = Matched | Foreign | Unmatched


def judge_answer(answer: Answer, requests: Mapping[str, Request], policy: AnswerPolicy) -> Verdict:
    """Whose answer it is; ``requests`` are the open ones by kind."""
    request = requests.get(answer.kind)
    reason = _why_not(answer, request, policy)
    if reason is None:
        assert request is not None
        assert policy.match is not None
        return Matched(request, policy.match)
    return Foreign() if policy.accepts_foreign else Unmatched(reason)


def _why_not(answer: Answer, request: Request | None, policy: AnswerPolicy) -> str | None:
    if request is None:
        return f"nobody has asked for {answer.kind}"
    if request.state is RequestState.REGISTERED or request.send_started_at is None:
        return f"request {request.request_id} has not been sent yet"
    due_at = request.due_at(policy.expiry.timeout)
    if answer.received_at > due_at:
        late = (answer.received_at - due_at).total_seconds()
        return f"late: request {request.request_id} was due {late:.0f} s before"
    match policy.match:
        case MatchBy.ECHO:
            return _echo_differs(answer, request)
        case MatchBy.KIND:
            return _does_not_fit(answer, request, request.send_started_at, policy)
        case None:
            return "requests.match is not set, so no answer is known as ours"


def _echo_differs(answer: Answer, request: Request) -> str | None:
    if answer.echo is None:
        return "it echoes no request"
    if answer.echo != request.seqn:
        return f"it echoes {answer.echo}, and the open request is {request.seqn}"
    return None


def _does_not_fit(
    answer: Answer, request: Request, send_started_at: datetime, policy: AnswerPolicy
) -> str | None:
    if answer.said_at is None:
        return "its DTTM is unreadable"
    outside = sorted(answer.days - request.wanted.days)
    if outside:
        return f"its day {outside[0]} was not asked for"
    zone = policy.zone
    # Where the clocks show a time twice, the later one: an answer is never older than it may be.
    said = answer.said_at.replace(tzinfo=zone, fold=1).astimezone(UTC)
    began = _cut(send_started_at.astimezone(zone), answer.said_unit).astimezone(UTC)
    if said + policy.clock_tolerance < began:
        older = (began - said).total_seconds()
        return f"older than the request: said {older:.0f} s before it was sent"
    return None


def _cut(moment: datetime, unit: timedelta) -> datetime:
    """To whole seconds, or to whole minutes where that is all the other side tells."""
    second = 0 if unit >= timedelta(minutes=1) else moment.second
    return moment.replace(second=second, microsecond=0)


def answered(
    request: Request, answer: Answer, *, by: MatchBy, cause: MailboxId, now: datetime
) -> Request:
    """The request after this answer: DONE once all that was asked for has come."""
    wanted = request.wanted.days
    days_done = request.days_done | (answer.days & wanted)
    progressed = replace(request, days_done=days_done, answer_message_id=cause, matched_by=by.value)
    if wanted - days_done:
        return progressed
    return progressed.closed(RequestState.DONE, None, now=now)
