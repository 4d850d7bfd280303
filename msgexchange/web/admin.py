"""``/admin``: what a person may see and do with the admin token (spec 1.5)."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from flask import Blueprint, Response, request

from msgexchange.ids import EventId
from msgexchange.lifecycle.letters import REPLAYABLE_SKIPS
from msgexchange.lifecycle.states import ErrorClass
from msgexchange.pipeline.letters import LetterDesk, NotDone
from msgexchange.pipeline.redeliver import NotRedeliverable
from msgexchange.pipeline.replaying import ReplayDesk
from msgexchange.ports import Audit, LetterQuery
from msgexchange.web.answers import json_answer
from msgexchange.web.body import Body
from msgexchange.web.letters import act_document, letter_document
from msgexchange.web.parameters import Query, read_flag, read_flid, read_limit
from msgexchange.web.problems import Problem, not_found
from msgexchange.web.replays import order_document, preflight_document
from msgexchange.web.requests import RequestDesk, add_request_calls

LIMIT_DEFAULT: Final = 200
LETTER_PARAMETERS: Final = (
    "class",
    "kind",
    "sender",
    "flight",
    "since",
    "before",
    "skipped",
    "discarded",
    "limit",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """What the calls under ``/admin`` need; ``timezone`` is the airport's."""

    token: str = field(repr=False)
    desk: LetterDesk
    replays: ReplayDesk
    audit: Audit
    redeliver: Callable[[EventId, str, str], EventId]
    """By id, who and why; raises ``NotRedeliverable``."""
    timezone: str
    requests: RequestDesk


def admin_calls(admin: Admin) -> Blueprint:
    """The calls; each wants the admin token."""
    routes = Blueprint("admin", __name__, url_prefix="/admin")
    routes.before_request(lambda: _authorize(admin.token))

    @routes.get("/dead")
    def dead() -> Response:
        query = Query(request.args, LETTER_PARAMETERS)
        flid = query.read("flight", read_flid, None, "a FLID")
        letters = admin.desk.find(letter_query(query, admin.timezone), flid=flid)
        now = admin.desk.now()
        found = [letter_document(one, now) for one in letters]
        return json_answer({"count": len(found), "letters": found})

    @routes.post("/discard")
    def discard() -> Response:
        given = Body("ids", "by", "reason")
        with refusals():
            closed = admin.desk.discard(
                given.ids(), by=given.text("by"), reason=given.text("reason")
            )
        return json_answer({"discarded": closed})

    @routes.post("/replay/plan")
    def plan() -> Response:
        given = Body("ids")
        with refusals():
            seen = admin.replays.plan(given.ids())
        return json_answer(preflight_document(seen))

    @routes.post("/replay/run")
    def run() -> Response:
        given = Body("token", "by", "reason", "allowRegression")
        with refusals():
            order = admin.replays.order(
                given.text("token"),
                by=given.text("by"),
                reason=given.text("reason"),
                allow_regression=given.flag("allowRegression"),
            )
        return json_answer(order_document(order), 202)

    @routes.get("/replay/orders/<order_id>")
    def order(order_id: str) -> Response:
        found = admin.replays.look(order_id)
        if found is None:
            raise not_found("There is no such order; POST /admin/replay/run answers with its id.")
        return json_answer(order_document(found))

    @routes.post("/redeliver")
    def redeliver() -> Response:
        given = Body("eventId", "by", "reason")
        try:
            successor = admin.redeliver(
                EventId(given.number("eventId")), given.text("by"), given.text("reason")
            )
        except NotRedeliverable as refusal:
            raise refused(str(refusal)) from refusal
        return json_answer({"eventId": successor})

    @routes.get("/audit")
    def audit() -> Response:
        query = Query(request.args, ("act", "by", "since", "limit"))
        acts = admin.audit.acts(
            act=query.read("act", str, None, "an act"),
            by=query.read("by", str, None, "a name"),
            since=query.read("since", moments(admin.timezone), None, "an ISO 8601 time"),
            limit=query.read("limit", read_limit, LIMIT_DEFAULT, "1 to 10000"),
        )
        return json_answer({"acts": [act_document(act) for act in acts]})

    add_request_calls(routes, admin.requests)
    return routes


class refusals:  # noqa: N801 - reads as what it is, a context
    """409 with the text of an act that is refused."""

    def __enter__(self) -> None:
        return

    def __exit__(self, _type: object, error: object, _trace: object) -> None:
        if isinstance(error, NotDone):
            raise refused(str(error)) from error


def refused(text: str) -> Problem:
    """409: nothing was done, and why."""
    return Problem(409, "refused", "The act is refused", text)


def letter_query(query: Query, timezone: str) -> LetterQuery:
    """The filters of a list."""
    wanted = query.read("class", _read_class, None, "an error class or a skip's reason")
    code = wanted if wanted in REPLAYABLE_SKIPS else None
    return LetterQuery(
        skipped=query.read("skipped", read_flag, default=False, accepts="true or false")
        or code is not None,
        discarded=query.read("discarded", read_flag, default=False, accepts="true or false"),
        error_class=ErrorClass(wanted) if wanted and code is None else None,
        skip_code=code,
        kind=query.read("kind", str, None, "TYPE or TYPE/STYP"),
        sender=query.read("sender", str, None, "a sender"),
        since=query.read("since", moments(timezone), None, "an ISO 8601 time"),
        before=query.read("before", moments(timezone), None, "an ISO 8601 time"),
        limit=query.read("limit", read_limit, LIMIT_DEFAULT, "1 to 10000"),
    )


def moments(timezone: str) -> Callable[[str], datetime | None]:
    """A reader of times; one without a zone is airport time."""

    def read(text: str) -> datetime | None:
        try:
            moment = datetime.fromisoformat(text)
            local = moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(timezone))
            return local.astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    return read


def _authorize(token: str) -> None:
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    # Compared even where the scheme is wrong, so that time tells nothing.
    is_same = hmac.compare_digest(credential.strip().encode(), token.encode())
    if scheme.lower() != "bearer" or not is_same:
        raise Problem(
            401,
            "token",
            "The token is missing or wrong",
            "Send the header 'Authorization: Bearer TOKEN' with the token of http.admin-token.",
            headers={"WWW-Authenticate": "Bearer"},
        )


def _read_class(text: str) -> str | None:
    return text if text in {*ErrorClass, *REPLAYABLE_SKIPS} else None
