"""Gauges read from the own store when ``/metrics`` is scraped."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from msgexchange.clock import Clock
from msgexchange.ids import Fence
from msgexchange.lifecycle.breaker import Breaker
from msgexchange.ports import LeaseView, PortError, StoreCounts


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


class ProcessGauges(Collector):
    """Whether this process leads, how many stand by, and which breakers are open."""

    def __init__(
        self,
        *,
        fence: Callable[[], Fence | None],
        lease: Callable[[], LeaseView],
        breakers: Callable[[], Mapping[str, Breaker]],
        clock: Clock,
    ) -> None:
        self._fence = fence
        self._lease = lease
        self._breakers = breakers
        self._clock = clock

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing up front: registering must not need the store."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        fence = self._fence()
        yield _gauge("leading", "1 while this process leads", fence is not None)
        yield _gauge("fence", "The fence this process leads with, 0 for none", fence or 0)
        yield self._open_breakers()
        try:
            lease = self._lease()
        except PortError:
            return
        standbys = [one for one in lease.fresh_standbys() if one.owner != lease.owner]
        yield _gauge("standbys", "Processes that stand by to lead", len(standbys))

    def _open_breakers(self) -> GaugeMetricFamily:
        now = self._clock.now()
        family = GaugeMetricFamily(
            "msgexchange_breaker_open_seconds",
            "How long an actor has waited for a dependency that is down",
            labels=["actor", "dependency"],
        )
        for actor, breaker in self._breakers().items():
            family.add_metric([actor, breaker.dependency], (now - breaker.since).total_seconds())
        return family


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
