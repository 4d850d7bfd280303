"""Gauges read from the own store when ``/metrics`` is scraped."""

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from msgexchange.clock import Clock
from msgexchange.ports import PortError, StoreCounts


class StoreGauges(Collector):
    """Watermark, gaps, backlog, ages, outbox lag; absent while the store is down."""

    def __init__(
        self, counts: Callable[[], StoreCounts], newest_id: Callable[[], int], clock: Clock
    ) -> None:
        self._counts = counts
        self._newest_id = newest_id
        self._clock = clock

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing up front: registering must not need the store."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        up = GaugeMetricFamily("msgexchange_store_up", "1 while the own store answers")
        try:
            counts = self._counts()
        except PortError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield _gauge("watermark", "Highest contiguous mailbox id taken in", counts.watermark)
        yield _gauge("open_gaps", "Ranges of missing mailbox ids", counts.open_gaps)
        yield _gauge("permanent_gap_ids", "Mailbox ids passed without a row", counts.permanent_ids)
        yield _gauge("late_messages", "Rows that came after W had passed them", counts.late)
        yield _gauge("intake_halted", "1 while intake waits for an operator", bool(counts.halted))
        yield from self._backlog(counts.watermark)
        yield _gauge("unmarked_messages", "Terminal messages without a mark", counts.unmarked)
        yield _gauge("flights", "Flights in the own store", counts.flights)
        now = self._clock.now()
        for name, text, since in (
            ("oldest_gap_age_seconds", "Age of the oldest open gap", counts.oldest_gap_first_seen),
            (
                "outbox_lag_seconds",
                "Age of the oldest event that waits for delivery",
                counts.oldest_pending_event_at,
            ),
        ):
            yield _gauge(name, text, (now - since).total_seconds() if since else 0)
        yield from _families(counts)

    def _backlog(self, watermark: int) -> Iterator[GaugeMetricFamily]:
        """Absent while the mailbox is down."""
        try:
            newest = self._newest_id()
        except PortError:
            return
        yield _gauge(
            "mailbox_backlog_ids", "Mailbox ids above the watermark", max(newest - watermark, 0)
        )


def _families(counts: StoreCounts) -> Iterator[GaugeMetricFamily]:
    inbox = GaugeMetricFamily("msgexchange_inbox_messages", "By state", labels=["state"])
    for state, amount in counts.messages.items():
        inbox.add_metric([state.value], amount)
    yield inbox
    dead = GaugeMetricFamily(
        "msgexchange_dead_letters", "Dead letters by class", labels=["error_class"]
    )
    for error_class, amount in counts.dead_by_class.items():
        dead.add_metric([error_class.value], amount)
    yield dead
    events = GaugeMetricFamily(
        "msgexchange_outbox_events", "By target and state", labels=["target", "state"]
    )
    for (target, event_state), amount in counts.events.items():
        events.add_metric([target.value, event_state.value], amount)
    yield events


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"msgexchange_{name}", text, value=value)
