"""Gauges read from the own store when ``/metrics`` is scraped."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from msgexchange.clock import Clock
from msgexchange.ids import Fence
from msgexchange.lifecycle.breaker import Breaker
from msgexchange.ports import LeaseView, PortError, StoreCounts
from msgexchange.telemetry.instruments import GAUGES


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
        try:
            counts = self._counts()
        except PortError:
            yield _gauge("store_up", 0)
            return
        yield _gauge("store_up", 1)
        yield _gauge("watermark", counts.watermark)
        yield _gauge("open_gaps", counts.open_gaps)
        yield _gauge("permanent_gap_ids", counts.permanent_ids)
        yield _gauge("late_messages", counts.late)
        yield _gauge("intake_halted", bool(counts.halted))
        yield from self._backlog(counts.watermark)
        yield _gauge("unmarked_messages", counts.unmarked)
        yield _gauge("flights", counts.flights)
        now = self._clock.now()
        for name, since in (
            ("oldest_gap_age_seconds", counts.oldest_gap_first_seen),
            ("head_age_seconds", counts.head_received_at),
            ("oldest_unmarked_age_seconds", counts.oldest_unmarked_at),
            ("outbox_lag_seconds", counts.oldest_pending_event_at),
            ("oldest_request_age_seconds", counts.oldest_request_at),
        ):
            yield _gauge(name, max((now - since).total_seconds(), 0.0) if since else 0)
        yield from _families(counts)

    def _backlog(self, watermark: int) -> Iterator[GaugeMetricFamily]:
        """Absent while the mailbox is down."""
        try:
            newest = self._newest_id()
        except PortError:
            return
        yield _gauge("mailbox_backlog_ids", max(newest - watermark, 0))


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
        yield _gauge("leading", fence is not None)
        yield _gauge("fence", fence or 0)
        yield self._open_breakers()
        try:
            lease = self._lease()
        except PortError:
            return
        standbys = [one for one in lease.fresh_standbys() if one.owner != lease.owner]
        yield _gauge("standbys", len(standbys))

    def _open_breakers(self) -> GaugeMetricFamily:
        now = self._clock.now()
        return _family(
            "breaker_open_seconds",
            {
                (actor, breaker.dependency): (now - breaker.since).total_seconds()
                for actor, breaker in self._breakers().items()
            },
        )


def _families(counts: StoreCounts) -> Iterator[GaugeMetricFamily]:
    yield _family("inbox_messages", {(k.value,): n for k, n in counts.messages.items()})
    yield _family("dead_letters", {(k.value,): n for k, n in counts.dead_by_class.items()})
    events: dict[tuple[str, ...], int] = {
        (target.value, state.value): n for (target, state), n in counts.events.items()
    }
    yield _family("outbox_events", events)
    asked: dict[tuple[str, ...], int] = {(k,): n for k, n in counts.open_requests.items()}
    yield _family("open_requests", asked)
    heard: dict[tuple[str, ...], float] = {
        (sender,): at.timestamp() for sender, at in counts.last_received.items()
    }
    yield _family("sender_last_message_timestamp_seconds", heard)


def _gauge(name: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"msgexchange_{name}", GAUGES[name].text, value=value)


def _family(name: str, values: Mapping[tuple[str, ...], float]) -> GaugeMetricFamily:
    gauge = GAUGES[name]
    family = GaugeMetricFamily(f"msgexchange_{name}", gauge.text, labels=gauge.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
