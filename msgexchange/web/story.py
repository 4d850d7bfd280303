"""A message's story: what happened to it, in time order (spec 5.6)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgexchange.codec.encode import encode
from msgexchange.flight.events import Target
from msgexchange.flight.state import Json
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.states import TERMINAL, EventState, MessageState
from msgexchange.pipeline.traced import trace_id
from msgexchange.ports import Act, ChangeView, EventView, MessageView

EVENTS_TOLD_MAX: Final = 20
"""A message of more events (a plan) has them counted, not told one by one."""
FIELDS_TOLD_MAX: Final = 12
VALUE_TOLD_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One thing that happened."""

    at: datetime
    what: str


def trace_url(jaeger_url: str | None, traceparent: str | None) -> str | None:
    """Where people look at the trace; None without ``telemetry.jaeger-url`` or a trace."""
    found = trace_id(traceparent)
    return None if None in (jaeger_url, found) else f"{str(jaeger_url).rstrip('/')}/trace/{found}"


def story_of(
    view: MessageView, topics: Mapping[Target, str], jaeger_url: str | None = None
) -> tuple[StoryLine, ...]:
    """Row, gap, attempts, decision, events, mark, what people did; what falls together keeps this
    order.
    """
    lines = [
        *_arrival(view, jaeger_url),
        *_attempts(view),
        *_decision(view),
        *_changes(view.changes),
        *_events(view, topics),
        *_mark(view),
        *(act_line(act, view.message_id) for act in view.acts),
    ]
    if view.archived_at is not None:
        lines.append(StoryLine(view.archived_at, "moved to the archive"))
    return tuple(sorted(lines, key=lambda line: line.at))


def _arrival(view: MessageView, jaeger_url: str | None) -> Iterator[StoryLine]:
    for gap in reversed(view.gaps):
        ids = f"id {gap.lo}" if gap.lo == gap.hi else f"ids {gap.lo} to {gap.hi}"
        if gap.decided_at is None:
            what = f"{ids} below it missing in the mailbox: it waits behind this gap"
            yield StoryLine(gap.first_seen, what)
            continue
        lasted_s = (gap.decided_at - gap.first_seen).total_seconds()
        why = "" if gap.why is None else f" ({gap.why})"
        what = f"{ids} below it, missing in the mailbox for {lasted_s:.3f} s: {gap.decision}{why}"
        yield StoryLine(gap.decided_at, what)
    size = "" if view.text_bytes is None else f", {view.text_bytes} bytes"
    yield StoryLine(view.received_at, f"enqueued from mailbox row {view.message_id}{size}")
    if view.traceparent is not None:
        yield StoryLine(view.received_at, _traced("trace", view.traceparent, jaeger_url))
    # A replay is a new trace; the row keeps the one it came with.
    own = trace_id(view.traceparent)
    traces = {trace_id(event.traceparent): event for event in reversed(view.events)}
    for event in [event for trace, event in traces.items() if trace not in (None, own)]:
        what = _traced("trace of its replay", event.traceparent, jaeger_url)
        yield StoryLine(event.created_at, what)


def _traced(what: str, traceparent: str | None, jaeger_url: str | None) -> str:
    url = trace_url(jaeger_url, traceparent)
    return f"{what} {trace_id(traceparent)}" + ("" if url is None else f": {url}")


def _attempts(view: MessageView) -> Iterator[StoryLine]:
    if view.started_at is not None:
        yield StoryLine(view.started_at, "first attempt began")
    if view.identity is not None:
        at = view.started_at or view.finished_at or view.received_at
        yield StoryLine(at, f"identity {view.identity}")
    for failure in view.failures:
        again = f" after {failure.round} replays" if failure.round else ""
        what = f"attempt {failure.attempt}{again} failed: {failure.error_class.value}: "
        yield StoryLine(failure.at, what + failure.error)
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


def _changes(changes: Sequence[ChangeView]) -> Iterator[StoryLine]:
    for one in changes[:EVENTS_TOLD_MAX]:
        yield StoryLine(one.at, f"flight {one.flid} version {one.version}: {changed(one)}")


def changed(one: ChangeView) -> str:
    """Field by field, old -> new; what is absent is a dash."""
    told = [f"{name} {_short(old)} -> {_short(new)}" for name, old, new in one.changes]
    more = len(told) - FIELDS_TOLD_MAX
    text = ", ".join(told[:FIELDS_TOLD_MAX]) or "nothing"
    return text + (f" and {more} more fields" if more > 0 else "")


def _short(value: Json | None) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else encode(value).decode()
    return text if len(text) <= VALUE_TOLD_MAX else f"{text[:VALUE_TOLD_MAX]}..."


def act_line(act: Act, message_id: MailboxId | None = None) -> StoryLine:
    """What a person did, and what came of it for this message."""
    outcome = act.outcomes.get(message_id) if message_id is not None else None
    parts = (f"{act.act} by {act.by}", act.reason, act.outcome, outcome)
    return StoryLine(act.at, ": ".join(part for part in parts if part))


def _events(view: MessageView, topics: Mapping[Target, str]) -> Iterator[StoryLine]:
    if len(view.events) > EVENTS_TOLD_MAX:
        yield from _counted(view.events)
        return
    for event in view.events:
        yield from event_lines(event, topics)


def event_lines(event: EventView, topics: Mapping[Target, str]) -> Iterator[StoryLine]:
    """When it was made, and when and where it went out."""
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
