"""The HTTP entry: one mailbox row, then a short cut into the inbox (spec 1.5, 3.2)."""

from collections.abc import Callable

from msgexchange.clock import Clock
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.watermark import MailboxRow
from msgexchange.pipeline.traced import trace_id
from msgexchange.ports import IntakeStore, Mailbox, PortError, Telemetry
from msgexchange.ports.tracing import UNTRACED, Tracing


class Entry:
    """Receives a message for the mailbox; received is not processed."""

    def __init__(
        self,
        *,
        mailbox: Mailbox,
        store: IntakeStore,
        clock: Clock,
        telemetry: Telemetry,
        wake_inbox: Callable[[], None],
        waits_for: Callable[[], PortError | None] = lambda: None,
        tracing: Tracing = UNTRACED,
    ) -> None:
        """``waits_for`` tells what this process has to wait for before it can begin at all."""
        self._mailbox = mailbox
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._wake_inbox = wake_inbox
        self._waits_for = waits_for
        self._tracing = tracing

    def receive(self, text: str, traceparent: str | None) -> MailboxId:
        """The row's id once its insert is committed, whatever the enqueue did.

        Raises ``Unavailable`` (nothing written) or ``InsertUnknown``.
        """
        outage = self._waits_for()
        if outage is not None:
            # Before the first W is known a row may be among those a first start passes by.
            raise outage
        since = self._clock.now()
        message_id = self._mailbox.insert(text)
        entered = self._tracing.entered(traceparent)
        row = MailboxRow(message_id, len(text.encode()))
        try:
            with self._store.transaction(None) as transaction:
                transaction.enqueue(row, now=self._clock.now(), traceparent=entered.traceparent)
        except PortError as failure:
            # The row is in the mailbox: the scan finds it. The caller has its answer already.
            self._telemetry.log(
                "entry.enqueue-failed",
                message_id=message_id,
                reason=str(failure),
                trace_id=trace_id(entered.traceparent),
            )
        self._tracing.received(entered, message_id, since=since)
        self._wake_inbox()
        return message_id
