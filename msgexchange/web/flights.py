"""``GET /all/flights`` and ``/flights/{flid}``: states as the schd topic carries them."""

from typing import Any

from flask import Blueprint, Response, request

from msgexchange.flight.events import schd_value
from msgexchange.flight.past import past_lives
from msgexchange.flight.state import FlightStatus
from msgexchange.ports import ChangeView
from msgexchange.web.answers import json_answer, written_time
from msgexchange.web.deps import WebDeps
from msgexchange.web.parameters import (
    ALL_STATUSES,
    FLIGHTS_DEFAULT,
    FLIGHTS_MAX,
    Query,
    flid_in_path,
    read_day,
    read_flid,
    read_limit,
    read_status,
)
from msgexchange.web.problems import not_found


def flights(deps: WebDeps) -> Blueprint:
    """The calls about flights."""
    routes = Blueprint("flights", __name__)

    @routes.get("/all/flights")
    def all_flights() -> Response:
        query = Query(request.args, ("operationDay", "status", "limit", "after"))
        day = query.read("operationDay", read_day, None, "a day such as 2026-09-03")
        statuses = f"{', '.join(FlightStatus)} or {ALL_STATUSES}"
        status = query.read("status", read_status, FlightStatus.ACTIVE.value, statuses)
        limit = query.read("limit", read_limit, FLIGHTS_DEFAULT, f"a number, 1 to {FLIGHTS_MAX}")
        after = query.read("after", read_flid, None, "the FLID in the last page's 'next'")
        as_of = deps.now()
        found = deps.reads.flights(
            operation_day=day,
            status=None if status == ALL_STATUSES else status,
            after=after,
            limit=limit + 1,
        )
        page = found[:limit]
        return json_answer(
            {
                "asOf": written_time(as_of),
                "count": len(page),
                "flights": [schd_value(state, deps.timezone) for state in page],
                "next": page[-1].flid if len(found) > limit else None,
            }
        )

    @routes.get("/flights/<flid>")
    def one_flight(flid: str) -> Response:
        state = deps.reads.flight(flid_in_path(flid))
        if state is None:
            detail = f"No flight {flid} is known; GET /all/flights lists those there are."
            raise not_found(detail, members={"error": detail})
        return json_answer(schd_value(state, deps.timezone))

    @routes.get("/flights/<flid>/history")
    def history(flid: str) -> Response:
        known = flid_in_path(flid)
        changes = deps.reads.changes(known)
        standing = deps.reads.flight(known)
        lives = past_lives(deps.written_lives(known), standing)
        if not changes and not lives and standing is None:
            detail = f"Nothing is known of a flight {flid}; its history may be past retention."
            raise not_found(detail, members={"error": detail})
        return json_answer(
            {
                "flid": flid,
                "lives": [
                    {
                        **schd_value(life.state, deps.timezone),
                        "writtenAt": written_time(life.written_at),
                    }
                    for life in lives
                ],
                "versions": [_version(change) for change in changes],
            }
        )

    return routes


def _version(change: ChangeView) -> dict[str, Any]:
    return {
        "version": change.version,
        "messageId": change.message_id,
        "at": written_time(change.at),
        "changes": [{"field": field, "old": old, "new": new} for field, old, new in change.changes],
    }
