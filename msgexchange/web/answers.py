"""Answers in JSON, and the times in them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from flask import Response

from msgexchange.codec.encode import encode

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""On every answer that says nothing else of its own."""


def json_answer(value: Mapping[str, object], status: int = 200) -> Response:
    """The value as JSON; the same value is the same bytes."""
    return Response(encode(value), status=status, mimetype="application/json")


def with_headers(response: Response) -> Response:
    """The answer, with ``HEADERS`` where it does not have its own."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def written_time(at: datetime) -> str:
    """UTC, ISO 8601, milliseconds: ``2026-09-03T10:30:00.000Z``."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def written_time_or_none(at: datetime | None) -> str | None:
    """The same, None for None."""
    return None if at is None else written_time(at)
