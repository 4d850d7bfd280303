"""``explain``: the whole story of a message, a flight or an event."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from msgexchange.cli import show
from msgexchange.cli.choosing import ID_MAX
from msgexchange.cli.context import Failure, Session
from msgexchange.flight.events import Target
from msgexchange.ids import EventId, Flid, MailboxId
from msgexchange.pipeline.traced import trace_id
from msgexchange.ports import ChangeView, Reads
from msgexchange.web.further_stories import event_story, flight_story
from msgexchange.web.messages import event_value, message_value, story_value
from msgexchange.web.story import StoryLine, story_of, trace_url


@dataclass(frozen=True, slots=True)
class Told:
    """One thing of the name that was asked for: its story, and the same for programs."""

    what: str
    story: tuple[StoryLine, ...]
    value: dict[str, Any]
    url: str | None = None


@click.command(
    epilog="Examples: run.py explain 17;  run.py explain 900123;  run.py explain 40 --as event"
)
@click.argument("what")
@click.option(
    "--as",
    "kinds",
    type=click.Choice(("message", "flight", "event")),
    multiple=True,
    help="Only as that; without it everything of that name is told.",
)
@show.JSON
@click.pass_obj
def explain(session: Session, *, what: str, kinds: tuple[str, ...], as_json: bool) -> None:
    """The story of a message (by mailbox id), a flight (FLID) or an event (event id)."""
    teller = _Teller(session)
    tellers = {"message": teller.message, "flight": teller.flight, "event": teller.event}
    with session.reads() as reads:
        found = {kind: tellers[kind](reads, what) for kind in kinds or tellers}
    if not any(found.values()):
        raise Failure(f"{what} is no {' or '.join(found)} known here")
    if as_json:
        show.as_json({kind: told and told.value for kind, told in found.items()})
        return
    for told in found.values():
        if told is not None:
            show.table(told.what, ("at", "what"), ((line.at, line.what) for line in told.story))
            if told.url is not None:
                click.echo(f"its trace: {told.url}")


class _Teller:
    def __init__(self, session: Session) -> None:
        settings = session.settings()
        self._topics: Mapping[Target, str] = {
            Target.MSG: settings.kafka.msg_topic,
            Target.SCHD: settings.kafka.schd_topic,
        }
        self._jaeger = settings.telemetry.jaeger_url
        self._settings = settings
        self._backends = session.backends

    def message(self, reads: Reads, what: str) -> Told | None:
        id_ = _number(what)
        view = None if id_ is None else reads.message(MailboxId(id_))
        if view is None:
            return None
        url = trace_url(self._jaeger, view.traceparent)
        value = {
            **message_value(view, self._topics, self._jaeger),
            "traceUrl": url,
            "changes": [_change(change) for change in view.changes],
        }
        return Told(
            f"message {what}: {view.state.value}",
            story_of(view, self._topics, self._jaeger),
            value,
            url,
        )

    def flight(self, reads: Reads, what: str) -> Told | None:
        flid = Flid(what)
        changes = reads.changes(flid)
        standing = reads.flight(flid)
        lives = self._backends.written_lives(self._settings, flid)
        if not changes and standing is None and not lives:
            return None
        ids = sorted({change.message_id for change in changes})
        traces = reads.traceparents(ids) if ids else {}
        events = reads.events_of(flid, ids) if ids else ()
        story = flight_story(
            changes, events, lives, self._topics, traceparents=traces, jaeger_url=self._jaeger
        )
        value = {
            "flid": flid,
            "status": standing and standing.status.value,
            "versions": [
                {
                    **_change(change),
                    "traceId": trace_id(traces.get(change.message_id)),
                    "traceUrl": trace_url(self._jaeger, traces.get(change.message_id)),
                }
                for change in changes
            ],
            "events": [event_value(event, self._topics) for event in events],
            "story": story_value(story),
        }
        return Told(f"flight {what}", story, value)

    def event(self, reads: Reads, what: str) -> Told | None:
        id_ = _number(what)
        event = None if id_ is None else reads.event(EventId(id_))
        if event is None:
            return None
        changes = [] if event.flid is None else reads.changes(event.flid)
        change = _of_version(changes, event.state_version)
        acts = reads.acts_on(event.event_id)
        story = event_story(event, change, acts, self._topics, self._jaeger)
        url = trace_url(self._jaeger, event.traceparent)
        value = {
            **event_value(event, self._topics),
            "messageId": event.message_id,
            "flid": event.flid,
            "stateVersion": event.state_version,
            "attempts": event.attempts,
            "error": event.error,
            "redeliveryOf": event.redelivery_of,
            "redeliveredAs": event.redelivered_as,
            "change": change and _change(change),
            "traceId": trace_id(event.traceparent),
            "traceUrl": url,
            "story": story_value(story),
        }
        return Told(f"event {what}: {event.state.value}", story, value, url)


def _number(what: str) -> int | None:
    """The 64-bit number it is, if it is one at all."""
    if not (what.isascii() and what.isdecimal()) or int(what) > ID_MAX:
        return None
    return int(what)


def _of_version(changes: Iterable[ChangeView], version: int | None) -> ChangeView | None:
    return next((change for change in changes if change.version == version), None)


def _change(change: ChangeView) -> dict[str, Any]:
    return {
        "flid": change.flid,
        "version": change.version,
        "messageId": change.message_id,
        "at": change.at,
        "changes": [{"field": name, "old": old, "new": new} for name, old, new in change.changes],
    }
