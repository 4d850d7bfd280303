"""What went wrong, in a form programs can read and a text people can act on (RFC 9457)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from flask import Flask, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from msgexchange.codec.encode import encode
from msgexchange.ports import HistoryFailed, RetryNow, Unavailable

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 5
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Problem(Exception):
    """Ends a request with this answer.

    ``slug`` names the kind of problem for programs, ``detail`` tells a person what to do.
    ``members`` are further members of the body.
    """

    def __init__(
        self,
        status: int,
        slug: str,
        title: str,
        detail: str,
        *,
        headers: Mapping[str, str] = _NONE,
        members: Mapping[str, str] = _NONE,
    ) -> None:
        super().__init__(title)
        self.status = status
        self.slug = slug
        self.title = title
        self.detail = detail
        self.headers = headers
        self.members = members

    def body(self) -> bytes:
        """The answer's body."""
        return encode(
            {
                **self.members,
                "type": f"urn:msgexchange:problem:{self.slug}",
                "title": self.title,
                "status": self.status,
                "detail": self.detail,
            }
        )

    def answer(self) -> Response:
        """The answer itself."""
        response = Response(self.body(), status=self.status, mimetype=MEDIA_TYPE)
        response.headers.update(dict(self.headers))
        return response


def unavailable(what: str) -> Problem:
    """503: something msgexchange needs is down; trying again is right."""
    return Problem(
        503,
        "unavailable",
        "A dependency is down",
        f"{what} Try again in {RETRY_AFTER_S} s; /health/ready tells when it is back.",
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )


def too_large(bytes_max: int) -> Problem:
    """413."""
    return Problem(
        413,
        "too-large",
        "The body is too large",
        f"At most {bytes_max} bytes are accepted (http.body-max). Split the message, or have the "
        "limit raised.",
    )


def not_found(detail: str, *, members: Mapping[str, str] = _NONE) -> Problem:
    """404."""
    return Problem(404, "not-found", "There is no such thing", detail, members=members)


def install(app: Flask, *, body_bytes_max: int) -> None:
    """Make every failure of ``app`` a problem document."""

    def of_problem(problem: Problem) -> Response:
        return problem.answer()

    def of_outage(outage: Unavailable) -> Response:
        return unavailable(f"The {outage.dependency.value} does not answer.").answer()

    def of_conflict(_conflict: RetryNow) -> Response:
        return unavailable("The database asks for another try.").answer()

    def of_history(failure: HistoryFailed) -> Response:
        return unavailable(f"The history of past flights cannot be read: {failure}.").answer()

    def of_http(refusal: HTTPException) -> Response:
        return _of_http(refusal, body_bytes_max).answer()

    app.register_error_handler(Problem, of_problem)
    app.register_error_handler(Unavailable, of_outage)
    app.register_error_handler(HistoryFailed, of_history)
    app.register_error_handler(RetryNow, of_conflict)
    # Flask logs what nobody caught and then asks the handler of its 500, which is this one.
    app.register_error_handler(HTTPException, of_http)


def _of_http(refusal: HTTPException, body_bytes_max: int) -> Problem:
    match refusal.code:
        case 404:
            return not_found("No call has this address; GET /openapi.json lists those there are.")
        case 405 if isinstance(refusal, MethodNotAllowed):
            allowed = ", ".join(sorted(refusal.valid_methods or ()))
            detail = f"This address accepts {allowed}."
            headers = {"Allow": allowed}
            return Problem(405, "method", "The method is not allowed", detail, headers=headers)
        case 413:
            return too_large(body_bytes_max)
        case None | 500:
            detail = "It is logged. Trying again may help; if it does not, tell the operators."
            return Problem(500, "internal", "Something went wrong here", detail)
        case status:
            detail = "The request cannot be understood; GET /openapi.json describes the calls."
            return Problem(status, f"http-{status}", refusal.name, detail)
