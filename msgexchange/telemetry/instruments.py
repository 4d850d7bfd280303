"""The metrics on ``/metrics``: names, kinds and labels; low cardinality, never a flight or id."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

LATENCY_BUCKETS_S = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric a step may touch.

    ``from_zero`` are values of its label that are served before they first count: Prometheus sees
    no increase in a series that begins with 1, so no rule would fire at the first.
    """

    text: str
    labels: tuple[str, ...] = ()
    from_zero: tuple[str, ...] = ()


COUNTERS = {
    "alerts": Instrument(
        "Things a person must know, by name",
        ("name",),
        ("aodb-error", "request-unanswered", "request-not-sent", "request-doubled"),
    ),
    "messages": Instrument(
        "Messages that left an attempt, by state and error class", ("state", "error_class")
    ),
    "inbox_enqueued": Instrument("Mailbox rows taken into the inbox"),
    "gaps_permanent": Instrument("Mailbox ids passed as permanent gaps"),
    "late_arrivals": Instrument("Mailbox rows that came after W had passed their ids"),
    "answers": Instrument(
        "Answers to requests, by how they were matched: echo, kind, foreign, unmatched",
        ("matched",),
        ("echo", "kind", "foreign", "unmatched"),
    ),
    "events_sent": Instrument("Events acknowledged by the broker", ("target",)),
    "actor_restarts": Instrument("Actors that failed and were started again", ("actor",)),
    "unknown_names": Instrument(
        "Elements and attributes the catalogue does not know", ("element",)
    ),
    "unreadable_times": Instrument("Times kept raw because no form fits", ("element",)),
    "log_lines_dropped": Instrument("Log lines lost to a blocked or slow sink"),
}

GAUGES = {
    "store_up": Instrument("1 while the own store answers"),
    "watermark": Instrument("Highest contiguous mailbox id taken in"),
    "mailbox_backlog_ids": Instrument("Mailbox ids above the watermark"),
    "open_gaps": Instrument("Ranges of missing mailbox ids that are waited for"),
    "oldest_gap_age_seconds": Instrument("Age of the oldest open gap, 0 without one"),
    "permanent_gap_ids": Instrument("Mailbox ids passed without a row"),
    "late_messages": Instrument("Rows that came after W had passed them"),
    "intake_halted": Instrument("1 while intake waits for an operator"),
    "inbox_messages": Instrument("Messages in the inbox, by state", ("state",)),
    "head_age_seconds": Instrument(
        "How long ago the message everybody waits for was taken in, 0 without one"
    ),
    "dead_letters": Instrument("Dead letters nobody has closed, by class", ("error_class",)),
    "unmarked_messages": Instrument("Terminal messages without a mark"),
    "oldest_unmarked_age_seconds": Instrument(
        "How long the oldest message without a mark has been terminal, 0 without one"
    ),
    "outbox_events": Instrument(
        "Events by target and state; a dead one that was sent again counts no more",
        ("target", "state"),
    ),
    "outbox_lag_seconds": Instrument("Age of the oldest event that waits for delivery"),
    "open_requests": Instrument("Requests to the AODB that are open, by kind", ("kind",)),
    "oldest_request_age_seconds": Instrument(
        "How long the oldest open request has been open, 0 without one"
    ),
    "flights": Instrument("Flights in the own store"),
    "sender_last_message_timestamp_seconds": Instrument(
        "When the newest message of a sender was taken in, in Unix time; 100 senders at most",
        ("sender",),
    ),
    "leading": Instrument("1 while this process leads"),
    "fence": Instrument("The fence this process leads with, 0 for none"),
    "standbys": Instrument("Processes that stand by to lead"),
    "breaker_open_seconds": Instrument(
        "How long an actor has waited for a dependency that is down", ("actor", "dependency")
    ),
}

HISTOGRAMS = {
    "commit_seconds": "Time one batch takes from its first read to its commit",
    "message_latency_seconds": "From a message's enqueue to its terminal commit",
}


LABEL_VALUES_MAX = 100
"""Distinct names counted one by one; they come from messages, so later ones share ``other``."""


class Instruments:
    """Creates every metric once in its own registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # One more series beside each counter, which says no more than the process's start.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._counters = {
            name: Counter(f"msgexchange_{name}", one.text, one.labels, registry=registry)
            for name, one in COUNTERS.items()
        }
        for name, one in COUNTERS.items():
            for value in one.from_zero:
                self._counters[name].labels(value)
        self._histograms = {
            name: Histogram(
                f"msgexchange_{name}", text, buckets=LATENCY_BUCKETS_S, registry=registry
            )
            for name, text in HISTOGRAMS.items()
        }
        self._names: dict[str, set[str]] = {}

    def count(self, name: str, amount: int, labels: dict[str, str]) -> None:
        counter = self._counters[name]
        if "element" in labels:
            labels["element"] = self._bounded(name, labels["element"])
        (counter.labels(**labels) if labels else counter).inc(amount)

    def _bounded(self, metric: str, value: str) -> str:
        seen = self._names.setdefault(metric, set())
        if value in seen:
            return value
        if len(seen) >= LABEL_VALUES_MAX:
            return "other"
        seen.add(value)
        return value

    def observe(self, name: str, seconds: float) -> None:
        self._histograms[name].observe(seconds)
