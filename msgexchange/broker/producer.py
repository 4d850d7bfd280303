"""An ordered, idempotent producer of one topic, at least once (spec 4.2).

What idempotence gives: within one producer session a batch that is sent again is stored once and in
its place, because the broker knows the next sequence number of the session. What it does not give:
when a batch fails for good, the client by default starts a new sequence and sends what was queued
behind it. With the gapless guarantee it stops instead (a fatal error), and the broker refuses what
was already under way, as its sequence numbers no longer fit. Hence here:

- a window that was not acknowledged in full is over: what is left of it is purged, its reports are
  collected, and the session is thrown away, so that nothing of it goes out behind our back;
- what was under way when it was purged may still arrive: the next window repeats it, which
  at-least-once allows (same event id), and its successors cannot arrive before it;
- the next call begins a new session.
"""

from collections.abc import Sequence
from functools import partial

from confluent_kafka import KafkaException, Producer

from msgexchange.broker.errors import error_of, reason_of, translated
from msgexchange.broker.settings import (
    LOGGER,
    ClientSettings,
    ProducerBounds,
    producer_config,
)
from msgexchange.broker.window import HELD_BACK, Window
from msgexchange.clock import Clock
from msgexchange.ports import (
    Acknowledged,
    Delivery,
    NotDelivered,
    Record,
    RecordRefused,
    Unavailable,
)

_PURGE_S_MAX = 2.0


class KafkaRecordProducer:
    """Port ``RecordProducer``; for one thread. Nothing connects before the first call.

    ``settings`` are the site's; ``ValueError`` names those that would weaken it.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        clock: Clock,
        settings: ClientSettings | None = None,
        bounds: ProducerBounds | None = None,
    ) -> None:
        self._topic = topic
        self._clock = clock
        self._bounds = bounds or ProducerBounds()
        self._config = producer_config(bootstrap, settings or {}, self._bounds)
        self._session: Producer | None = None

    def send(self, records: Sequence[Record]) -> Sequence[Delivery]:
        """One answer per record, in order, within the message timeout and a round trip.

        A broker refuses a whole batch, so a window with a refusal in it is gone through again one
        by one, up to the record to blame: only that one is called refused.
        """
        deadline = self._clock.monotonic() + self._bounds.message_timeout_s
        answers = self._send_window(records, deadline)
        first = next((n for n, it in enumerate(answers) if not isinstance(it, Acknowledged)), None)
        if first is None or len(records) == 1 or not isinstance(answers[first], RecordRefused):
            return answers
        return self._send_singly(records, answers, first, deadline)

    def close(self) -> None:
        """Whatever is queued is purged, not flushed: ``send`` has answered for all of it."""
        if self._session is not None:
            self._abandon(self._session, Window(0))

    def _send_singly(
        self, records: Sequence[Record], answers: Sequence[Delivery], first: int, deadline: float
    ) -> Sequence[Delivery]:
        result = list(answers[:first])
        for record, answer in zip(records[first:], answers[first:], strict=True):
            stopped = bool(result) and not isinstance(result[-1], Acknowledged)
            if isinstance(answer, Acknowledged):
                result.append(answer)
            elif stopped:
                result.append(HELD_BACK)
            else:
                result.extend(self._send_window([record], deadline))
        return result

    def _send_window(self, records: Sequence[Record], deadline: float) -> Sequence[Delivery]:
        window = Window(len(records))
        try:
            session = self._session or self._new_session()
        except Unavailable as failure:
            return [NotDelivered(failure.reason)] * len(records)
        for number, record in enumerate(records):
            if not self._enqueue(session, window, number, record, deadline):
                break
        while window.waits and self._clock.monotonic() < deadline:
            self._poll(session, window, deadline)
        if not window.is_sound:
            self._abandon(session, window)
        return window.answers()

    def _enqueue(
        self, session: Producer, window: Window, number: int, record: Record, deadline: float
    ) -> bool:
        """False if nothing may follow the record."""
        while True:
            try:
                session.produce(
                    self._topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    on_delivery=partial(window.report, number),
                )
            except BufferError:
                if not window.waits or self._clock.monotonic() >= deadline:
                    return False
                self._poll(session, window, deadline)
            except KafkaException as exception:
                window.refuse(number, error_of(exception))
                return False
            else:
                window.enqueued += 1
                return True

    def _poll(self, session: Producer, window: Window, deadline: float) -> None:
        """Serve reports until there is none or the time is over."""
        # Not flush(): it goes on calling back after a fatal error was raised inside it, and every
        # callback then fails.
        try:
            session.poll(max(0.0, deadline - self._clock.monotonic()))
        except KafkaException as exception:
            window.broken = reason_of(error_of(exception))

    def _abandon(self, session: Producer, window: Window) -> None:
        self._session = None
        deadline = self._clock.monotonic() + _PURGE_S_MAX
        session.purge(in_queue=True, in_flight=True, blocking=True)
        while window.unreported and self._clock.monotonic() < deadline:
            self._poll(session, window, deadline)

    def _new_session(self) -> Producer:
        """A session that has reached the broker: one that cannot fails at once, not record by
        record.
        """
        session = Producer(self._config, logger=LOGGER)
        with translated():
            session.list_topics(self._topic, timeout=self._bounds.round_trip_timeout_s)
        self._session = session
        return session
