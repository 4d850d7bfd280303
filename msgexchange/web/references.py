"""``GET /reference/{type}``: reference data as the AODB told it (spec 5.2)."""

from flask import Blueprint, Response, request

from msgexchange.ports import ReferenceView
from msgexchange.web.answers import json_answer, written_time
from msgexchange.web.deps import WebDeps
from msgexchange.web.parameters import FLIGHTS_DEFAULT, FLIGHTS_MAX, Query, read_limit
from msgexchange.web.problems import not_found


def references(deps: WebDeps) -> Blueprint:
    """The call about reference data."""
    routes = Blueprint("references", __name__)

    @routes.get("/reference/<type_>")
    def one_type(type_: str) -> Response:
        query = Query(request.args, ("limit", "after"))
        limit = query.read("limit", read_limit, FLIGHTS_DEFAULT, f"a number, 1 to {FLIGHTS_MAX}")
        after = query.read("after", str, None, "the key in the last page's 'next'")
        if type_ not in deps.reference_types:
            known = ", ".join(sorted(deps.reference_types))
            detail = f"{type_[:40]} is no reference type of the catalogue; there are {known}."
            raise not_found(detail, members={"error": detail})
        as_of = deps.now()
        found = deps.reads.references(type_, after=after, limit=limit + 1)
        page = found[:limit]
        return json_answer(
            {
                "asOf": written_time(as_of),
                "type": type_,
                "count": len(page),
                "records": [_value(view) for view in page],
                "next": page[-1].key if len(found) > limit else None,
            }
        )

    return routes


def _value(view: ReferenceView) -> dict[str, object]:
    return {
        "key": view.key,
        "record": view.record,
        "lastMessageId": view.last_message_id,
        "updatedAt": written_time(view.updated_at),
    }
