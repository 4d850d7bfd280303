"""Stories of a flight and of an event, in time order (spec 5.6)."""

from collections.abc import Iterator, Mapping, Sequence

from msgexchange.flight.events import Target
from msgexchange.flight.past import PastFlight
from msgexchange.ids import MailboxId
from msgexchange.ports import Act, ChangeView, EventView
from msgexchange.web.story import StoryLine, act_line, changed, event_lines, trace_url


def flight_story(
    changes: Sequence[ChangeView],
    events: Sequence[EventView],
    lives: Sequence[PastFlight],
    topics: Mapping[Target, str],
    *,
    traceparents: Mapping[MailboxId, str],
    jaeger_url: str | None = None,
) -> tuple[StoryLine, ...]:
    """Every version with the message behind it, its events, and the lives that are over."""
    lines = [
        *_versions(changes, traceparents, jaeger_url),
        *(line for event in events for line in event_lines(event, topics)),
        *(
            StoryLine(
                life.written_at,
                f"operation day {life.state.operation_day} written to history at version "
                f"{life.state.version}",
            )
            for life in lives
        ),
    ]
    return tuple(sorted(lines, key=lambda line: line.at))


def _versions(
    changes: Sequence[ChangeView], traceparents: Mapping[MailboxId, str], jaeger_url: str | None
) -> Iterator[StoryLine]:
    for one in changes:
        url = trace_url(jaeger_url, traceparents.get(one.message_id))
        traced = "" if url is None else f" ({url})"
        what = f"version {one.version} by message {one.message_id}{traced}: {changed(one)}"
        yield StoryLine(one.at, what)


def event_story(
    event: EventView,
    change: ChangeView | None,
    acts: Sequence[Act],
    topics: Mapping[Target, str],
    jaeger_url: str | None = None,
) -> tuple[StoryLine, ...]:
    """What it tells of, where it went, and what people did to it."""
    cause = f"caused by message {event.message_id}"
    if event.redelivery_of is not None:
        cause += f", sent again in place of event {event.redelivery_of}"
    url = trace_url(jaeger_url, event.traceparent)
    lines = [StoryLine(event.created_at, cause + (f", trace {url}" if url else ""))]
    if change is not None:
        what = f"flight {change.flid} version {change.version}: {changed(change)}"
        lines.append(StoryLine(change.at, what))
    lines += event_lines(event, topics)
    if event.next_attempt_at is not None:
        lines.append(StoryLine(event.next_attempt_at, f"attempt {event.attempts + 1} is due"))
    lines += [act_line(act) for act in acts]
    if event.redelivered_as is not None and not acts:
        lines.append(StoryLine(event.created_at, f"sent again as event {event.redelivered_as}"))
    return tuple(sorted(lines, key=lambda line: line.at))
