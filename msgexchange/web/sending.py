"""``POST /cminmsgs/send``: into the mailbox, unjudged."""

import hmac
import re

from flask import Blueprint, Request, Response, request

from msgexchange.codec.octets import Undecodable, decode_octets
from msgexchange.ports import Dependency, InsertUnknown, Unavailable
from msgexchange.web.deps import WebDeps
from msgexchange.web.problems import RETRY_AFTER_S, Problem, unavailable

_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)


def sending(deps: WebDeps) -> Blueprint:
    """The call that receives messages."""
    routes = Blueprint("sending", __name__)

    @routes.post("/cminmsgs/send")
    def send() -> Response:
        _authorize(request, deps.send_token)
        if deps.is_shadow:
            raise Problem(
                403,
                "shadow",
                "A shadow run receives nothing",
                "This instance only watches the mailbox. Send to the production instance.",
            )
        text = _text(request)
        try:
            message_id = deps.entry.receive(text, _traceparent(request))
        except Unavailable as outage:
            raise _outage(outage) from outage
        except InsertUnknown as doubt:
            raise _doubt() from doubt
        return Response(str(message_id), mimetype="text/plain")

    return routes


def _authorize(given: Request, token: str | None) -> None:
    if token is None:
        return
    scheme, _, credential = given.headers.get("Authorization", "").partition(" ")
    # Compared even where the scheme is wrong, so that time tells nothing.
    is_same = hmac.compare_digest(credential.strip().encode(), token.encode())
    if scheme.lower() != "bearer" or not is_same:
        raise Problem(
            401,
            "token",
            "The token is missing or wrong",
            "Send the header 'Authorization: Bearer TOKEN' with the token of http.send-token.",
            headers={"WWW-Authenticate": "Bearer"},
        )


def _text(given: Request) -> str:
    decoded = decode_octets(given.get_data(cache=False), given.headers.get("Content-Type"))
    if isinstance(decoded, Undecodable):
        raise Problem(
            400,
            "undecodable",
            "The body is not text",
            f"Nothing was stored: {decoded.reason}.",
        )
    if not decoded:
        raise Problem(
            400, "empty", "The body is empty", "Send the XML message itself as the request's body."
        )
    return decoded


def _traceparent(given: Request) -> str | None:
    header = given.headers.get("traceparent", "")
    return header if _TRACEPARENT.fullmatch(header) else None


def _outage(outage: Unavailable) -> Problem:
    what = "mailbox" if outage.dependency is Dependency.MAILBOX else outage.dependency.value
    return unavailable(f"The {what} cannot be reached; nothing was stored.")


def _doubt() -> Problem:
    return Problem(
        503,
        "insert-unknown",
        "Whether the message was stored is not known",
        "The connection to the mailbox was lost while the row was committed. Send the message "
        "again: a retry may create a second row, which identity will skip.",
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )
