"""Requests to the AODB over HTTP: made, listed (spec 5.1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from flask import Blueprint, Response, request

from msgexchange.lifecycle.answer import MatchBy
from msgexchange.lifecycle.request import PlanWanted, ReferenceWanted, Request, Wanted
from msgexchange.pipeline.asking import NotAskable
from msgexchange.web.answers import json_answer, written_time, written_time_or_none
from msgexchange.web.body import Body
from msgexchange.web.parameters import Query, bad_parameter, read_day, read_flag, read_limit
from msgexchange.web.problems import Problem

LIMIT_DEFAULT: Final = 50


@dataclass(frozen=True, slots=True)
class RequestDesk:
    """Where requests are made and looked at."""

    ask: Callable[[Wanted, str, str | None], Request]
    """What, who and why; raises ``NotAskable``."""
    recent: Callable[[bool, int], Sequence[Request]]
    """Closed ones too, how many at most; the newest first."""


def add_request_calls(routes: Blueprint, desk: RequestDesk) -> None:
    """``/requests`` beside the other calls of a blueprint, which checks who asks."""

    @routes.get("/requests")
    def requests() -> Response:
        query = Query(request.args, ("all", "limit"))
        every = query.read("all", read_flag, default=False, accepts="true or false")
        limit = query.read("limit", read_limit, LIMIT_DEFAULT, "1 to 10000")
        found = [request_document(one) for one in desk.recent(every, limit)]
        return json_answer({"count": len(found), "requests": found})

    @routes.post("/requests")
    def ask() -> Response:
        given = Body("day", "to", "type", "by", "reason")
        wanted = _wanted(given)
        try:
            asked = desk.ask(wanted, given.text("by"), given.text_or_none("reason"))
        except NotAskable as refusal:
            raise Problem(409, "refused", "The act is refused", str(refusal)) from refusal
        return json_answer(request_document(asked), 202)


def request_document(asked: Request) -> Mapping[str, Any]:
    """A request as programs read it."""
    return {
        "requestId": asked.request_id,
        "kind": asked.wanted.kind,
        "days": sorted(map(str, asked.wanted.days)),
        "daysAnswered": sorted(map(str, asked.days_done)),
        "state": asked.state.value,
        "seqn": asked.seqn,
        "requestedBy": asked.requested_by,
        "createdAt": written_time(asked.created_at),
        "sendStartedAt": written_time_or_none(asked.send_started_at),
        "sentAt": written_time_or_none(asked.sent_at),
        "finishedAt": written_time_or_none(asked.finished_at),
        "eventId": asked.event_id,
        "outboundId": asked.outbound_id,
        "answerMessageId": asked.answer_message_id,
        "matchedBy": asked.matched_by,
        "approximate": asked.matched_by == MatchBy.KIND.value,
        "error": asked.error,
    }


def _wanted(given: Body) -> Wanted:
    type_, day = given.text_or_none("type"), given.text_or_none("day")
    if (type_ is None) == (day is None):
        raise bad_parameter("day", "give a day for a plan, or a type for reference data")
    if type_ is not None:
        return ReferenceWanted(type_)
    first = read_day(day or "")
    last = read_day(given.text_or_none("to") or day or "")
    if first is None or last is None:
        raise bad_parameter("day" if first is None else "to", "give yyyy-MM-dd")
    try:
        return PlanWanted(first, last)
    except ValueError as fault:
        raise bad_parameter("to", str(fault)) from fault
