"""A message's story: what happened to it, in time order (spec 5.6)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgexchange.codec.encode import encode
from msgexchange.flight.events import Target
from msgexchange.lifecycle.states import TERMINAL, EventState, MessageState
from msgexchange.ports import EventView, MessageView

EVENTS_TOLD_MAX: Final = 20
"""A message of more events (a plan) has them counted, not told one by one."""


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One thing that happened."""

    at: datetime
    what: str


def story_of(view: MessageView, topics: Mapping[Target, str]) -> tuple[StoryLine, ...]:
    """Enqueued, attempts, decision, events, mark; what falls together keeps this order."""
    lines = [*_attempts(view), *_decision(view), *_events(view, topics), *_mark(view)]
    return tuple(sorted(lines, key=lambda line: line.at))


def _attempts(view: MessageView) -> Iterator[StoryLine]:
    yield StoryLine(view.received_at, "enqueued from the mailbox")
    if view.started_at is not None:
        yield StoryLine(view.started_at, "first attempt began")
    for failure in view.failures:
        what = f"attempt {failure.attempt} failed: {failure.error_class.value}: {failure.error}"
        yield StoryLine(failure.at, what)
    if view.state is MessageState.FAILED and view.next_attempt_at is not None:
        yield StoryLine(view.next_attempt_at, f"attempt {view.attempts + 1} is due")


def _decision(view: MessageView) -> Iterator[StoryLine]:
    if view.state not in TERMINAL or view.finished_at is None:
        return
    verdict = view.state.value
    if view.error_class is not None:
        cause = f", last cause {view.last_cause.value}" if view.last_cause else ""
        verdict += f"({view.error_class.value}{cause})"
    if view.error is not None:
        verdict += f": {view.error}"
    if view.flids:
        more = len(view.flids) - EVENTS_TOLD_MAX
        named = ", ".join(view.flids[:EVENTS_TOLD_MAX]) + (f" and {more} more" if more > 0 else "")
        verdict += f"; flights {named}"
    if view.note is not None:
        verdict += f" [{view.note}]"
    yield StoryLine(view.finished_at, verdict)
    if view.kept:
        what = f"kept beside the flights, not applied: {encode(view.kept).decode()}"
        yield StoryLine(view.finished_at, what)


def _events(view: MessageView, topics: Mapping[Target, str]) -> Iterator[StoryLine]:
    if len(view.events) > EVENTS_TOLD_MAX:
        yield from _counted(view.events)
        return
    for event in view.events:
        of_flight = "" if event.flid is None else f" of flight {event.flid}"
        named = f"event {event.event_id}"
        made = f"{named}: {event.type.value}{of_flight} for {event.target.value}"
        yield StoryLine(event.created_at, made + _fate(event))
        if event.sent_at is not None and event.state is EventState.SENT:
            yield StoryLine(event.sent_at, f"{named} is out{_place(event, topics)}")


def _fate(event: EventView) -> str:
    """What can be said of an event without a time of its own."""
    match event.state:
        case EventState.SUPERSEDED:
            return f", superseded by event {event.superseded_by}"
        case EventState.DEAD | EventState.CANCELLED:
            return f", {event.state.value}: {event.error}"
        case EventState.PENDING if event.error is not None:
            return f", waiting after {event.attempts} failed attempts: {event.error}"
        case _:
            return ""


def _place(event: EventView, topics: Mapping[Target, str]) -> str:
    topic = topics.get(event.target)
    if topic is None or event.partition is None:
        return ""
    return f": topic {topic}, partition {event.partition}, offset {event.offset}"


def _counted(events: tuple[EventView, ...]) -> Iterator[StoryLine]:
    """One line for what was made, one for each target when its last event was out."""
    kinds = Counter((event.type.value, event.target.value) for event in events)
    made = ", ".join(f"{n} {type_} for {target}" for (type_, target), n in sorted(kinds.items()))
    yield StoryLine(events[0].created_at, f"events: {made}")
    for target in Target:
        aimed = [event for event in events if event.target is target]
        sent = [event.sent_at for event in aimed if event.sent_at is not None]
        if sent:
            text = f"{len(sent)} of {len(aimed)} events for {target.value} are out"
            yield StoryLine(max(sent), text)


def _mark(view: MessageView) -> Iterator[StoryLine]:
    if view.marked_at is not None:
        how = "" if view.mark_error is None else f" ({view.mark_error})"
        yield StoryLine(view.marked_at, f"marked as processed in the mailbox{how}")
    elif view.mark_error is not None:
        at = view.finished_at or view.received_at
        yield StoryLine(at, f"the mark is not written yet: {view.mark_error}")
