"""``GET /messages/{id}``: what became of a message."""

from collections.abc import Iterable, Mapping
from typing import Any

from flask import Blueprint, Response

from msgexchange.flight.events import Target
from msgexchange.pipeline.traced import trace_id
from msgexchange.ports import EventView, MessageView, MetaColumns
from msgexchange.web.answers import json_answer, written_time, written_time_or_none
from msgexchange.web.deps import WebDeps
from msgexchange.web.parameters import message_id_in_path
from msgexchange.web.problems import not_found
from msgexchange.web.story import StoryLine, story_of


def messages(deps: WebDeps) -> Blueprint:
    """The call about a message."""
    routes = Blueprint("messages", __name__)

    @routes.get("/messages/<message_id>")
    def one_message(message_id: str) -> Response:
        view = deps.reads.message(message_id_in_path(message_id))
        if view is None:
            raise not_found(
                f"Message {message_id} is not in the inbox. If it was just sent, a scan will find "
                "it; if its id is old, its record may be past retention."
            )
        return json_answer(message_value(view, deps.topics, deps.jaeger_url))

    return routes


def message_value(
    view: MessageView, topics: Mapping[Target, str], jaeger_url: str | None = None
) -> dict[str, Any]:
    """The JSON body; fields without a value are null."""
    return {
        "id": view.message_id,
        "state": view.state.value,
        "errorClass": view.error_class and view.error_class.value,
        "error": view.error,
        "identity": view.identity,
        "kind": _kind(view.meta),
        "attempts": view.attempts,
        "flids": view.flids,
        "unknown": view.unknown,
        "events": [event_value(event, topics) for event in view.events],
        "marked": view.marked_at is not None,
        "receivedAt": written_time(view.received_at),
        "finishedAt": written_time_or_none(view.finished_at),
        "traceId": trace_id(view.traceparent),
        "story": story_value(story_of(view, topics, jaeger_url)),
    }


def _kind(meta: MetaColumns) -> str | None:
    return f"{meta.type}/{meta.styp}" if meta.type and meta.styp else meta.type


def story_value(lines: Iterable[StoryLine]) -> list[dict[str, str]]:
    """Lines of a story as JSON."""
    return [{"at": written_time(line.at), "what": line.what} for line in lines]


def event_value(event: EventView, topics: Mapping[Target, str]) -> dict[str, Any]:
    """An event of a message's body."""
    return {
        "eventId": event.event_id,
        "target": event.target.value,
        "type": event.type.value,
        "state": event.state.value,
        "topic": topics.get(event.target),
        "partition": event.partition,
        "offset": event.offset,
    }
