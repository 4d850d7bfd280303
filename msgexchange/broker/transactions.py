"""A window and its position in one Kafka transaction (spec 4.2, exactly-once).

The position is the committed offset of a consumer group that nobody is a member of, on a topic of
its own. The group and the transactional id are one name: the broker lets only the producer that
came last under a name commit, and ends what the one before left open.

How the client's errors are taken, as it documents them: *retriable* calls are made again until the
window's time is over; an *abortable* error aborts the transaction, so that readers wait no longer
for its end. Every error ends the session, as does a call whose outcome nobody knows: the next
``begin`` starts a fresh one, which shuts the old one out.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaException, Producer, TopicPartition

from msgexchange.broker.errors import SHUT_OUT, error_of, reason_of, translated
from msgexchange.broker.position import PositionReader
from msgexchange.broker.settings import (
    LOGGER,
    TRANSACTION_TIMEOUT_S,
    ClientSettings,
    ProducerBounds,
    transaction_config,
)
from msgexchange.broker.window import Window
from msgexchange.clock import Clock
from msgexchange.lifecycle.position import Position
from msgexchange.ports import (
    Acknowledged,
    Dependency,
    NotDelivered,
    Record,
    RecordRefused,
    Superseded,
    Unavailable,
    WindowRefused,
)

ABORT_S_MAX = 2.0
"""If the broker does not take it, the next session ends it."""
REPORTS_S_MAX = 2.0
"""What the client still has to report after an abort, it reports at once."""


class _Abortable(Unavailable):
    """Nobody's fault; the transaction can only be aborted."""


class KafkaTransactions:
    """Port ``TransactionProducer``; for one thread. Nothing connects before the first call.

    ``name`` is transactional id and group; ``prove`` is called once, before the first session, and
    raises where the cluster does not keep transactions apart.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        name: str,
        position_topic: str,
        clock: Clock,
        prove: Callable[[], None],
        settings: ClientSettings | None = None,
        bounds: ProducerBounds | None = None,
    ) -> None:
        self._topic = topic
        self._position_topic = position_topic
        self._clock = clock
        self._prove = prove
        self._bounds = bounds or ProducerBounds()
        self._config = transaction_config(bootstrap, settings or {}, self._bounds, name=name)
        self._reader = PositionReader(
            bootstrap,
            position_topic,
            group=name,
            settings=settings or {},
            round_trip_timeout_s=self._bounds.round_trip_timeout_s,
        )
        self._session: Producer | None = None
        self._group: Any = None
        self._proven = False

    def begin(self) -> None:
        self.close()
        if not self._proven:
            self._prove()
            self._proven = True
        session = Producer(self._config, logger=LOGGER)
        with translated():
            found = session.list_topics(self._topic, timeout=self._bounds.round_trip_timeout_s)
        missing = found.topics[self._topic].error
        if missing is not None:
            raise Unavailable(Dependency.BROKER, f"topic {self._topic}: {reason_of(missing)}")
        self._group = self._reader.group_metadata()
        self._until_answered(session.init_transactions, self._deadline())
        self._session = session

    def position(self) -> Position | None:
        return self._reader.read()

    def publish(self, records: Sequence[Record], position: Position) -> Sequence[Acknowledged]:
        session = self._session
        if session is None:
            raise Unavailable(Dependency.BROKER, "no session was begun")
        deadline = self._deadline()
        try:
            self._until_answered(lambda _timeout_s: session.begin_transaction(), deadline)
            landed = self._send(session, records, deadline)
            self._commit(session, position, deadline)
        except _Abortable as failure:
            with suppress(Unavailable, Superseded):
                self._until_answered(
                    session.abort_transaction, self._clock.monotonic() + ABORT_S_MAX
                )
            self.close()
            raise Unavailable(Dependency.BROKER, failure.reason) from failure
        except BaseException:
            # Also after a refusal: the client has counted the refused record, the broker has not,
            # and windows that are not to blame would fail for the gap.
            self.close()
            raise
        return landed

    def close(self) -> None:
        """A transaction that is still open ends at the next ``begin``, or when its time is over."""
        session, self._session = self._session, None
        if session is not None:
            session.purge(in_queue=True, in_flight=True, blocking=True)

    def _deadline(self) -> float:
        return self._clock.monotonic() + TRANSACTION_TIMEOUT_S

    def _send(
        self, session: Producer, records: Sequence[Record], deadline: float
    ) -> Sequence[Acknowledged]:
        """Every record acknowledged, or the transaction aborted and the reason raised."""
        window = Window(len(records))
        for number, record in enumerate(records):
            if not self._enqueue(session, window, number, record, deadline):
                break
        while window.waits and self._clock.monotonic() < deadline:
            self._poll(session, window, deadline)
        landed = [answer for answer in window.answers() if isinstance(answer, Acknowledged)]
        if len(landed) < len(records):
            self._abort(session, window)
        return landed

    def _abort(self, session: Producer, window: Window) -> None:
        """Take the window back and raise why.

        The client takes the others back as soon as one is refused, and may report that first: all
        reports must be in before anybody can be found to blame.
        """
        self._until_answered(session.abort_transaction, self._deadline())
        deadline = self._clock.monotonic() + REPORTS_S_MAX
        while window.unreported and self._clock.monotonic() < deadline:
            self._poll(session, window, deadline)
        answers = window.answers()
        for answer in answers:
            if isinstance(answer, RecordRefused):
                raise WindowRefused(answer.reason)
        reasons = [answer.reason for answer in answers if isinstance(answer, NotDelivered)]
        raise Unavailable(Dependency.BROKER, window.broken or next(iter(reasons), "no answer"))

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
        try:
            session.poll(max(0.0, deadline - self._clock.monotonic()))
        except KafkaException as exception:
            window.broken = reason_of(error_of(exception))

    def _commit(self, session: Producer, position: Position, deadline: float) -> None:
        offset = TopicPartition(
            self._position_topic, 0, position.event_id, metadata=position.encode()
        )
        self._until_answered(
            partial(session.send_offsets_to_transaction, [offset], self._group), deadline
        )
        self._until_answered(session.commit_transaction, deadline)

    def _until_answered(self, call: Callable[[float], None], deadline: float) -> None:
        """Make a transaction call, again as long as the client calls it retriable."""
        while True:
            left = deadline - self._clock.monotonic()
            try:
                call(max(left, 0.1))
            except KafkaException as exception:
                if error_of(exception).retriable() and self._clock.monotonic() < deadline:
                    continue
                raise _failure(exception) from exception
            else:
                return


def _failure(exception: KafkaException) -> Superseded | Unavailable:
    error = error_of(exception)
    if error.code() in SHUT_OUT:
        return Superseded(reason_of(error))
    if error.txn_requires_abort():
        return _Abortable(Dependency.BROKER, reason_of(error))
    return Unavailable(Dependency.BROKER, reason_of(error))
