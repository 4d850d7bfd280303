"""Open requests looked after: given up when over their time, asked again, told when doubled."""

from collections.abc import Callable
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.ids import Fence, RequestId
from msgexchange.lifecycle.request import ExpiryPolicy, Request, RequestState, overdue
from msgexchange.pipeline.asking import AskingRules, Order, register, shown
from msgexchange.pipeline.sending import alert_doubled
from msgexchange.pipeline.step import PauseS
from msgexchange.ports import Telemetry
from msgexchange.ports.outbound import OutMailbox
from msgexchange.ports.requests import OutboundStore, RequestStore

PERIOD = timedelta(seconds=30)
LOOKED_FOR = timedelta(hours=1)
"""So long after it was sent a second row of a request is looked for, answered or not."""


class RequestTimeouts:
    """Expires in one commit whatever is over its time; the leader's alone."""

    def __init__(
        self,
        *,
        store: RequestStore,
        clock: Clock,
        fence: Fence,
        policy: ExpiryPolicy,
        rules: AskingRules,
        new_request_id: Callable[[], RequestId],
        telemetry: Telemetry,
        wake_sender: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._fence = fence
        self._policy = policy
        self._rules = rules
        self._new_request_id = new_request_id
        self._telemetry = telemetry
        self._wake_sender = wake_sender

    def step(self) -> PauseS:
        # The writer row is the pump's: it is not taken for nothing.
        now = self._clock.now()
        timeout = self._policy.timeout
        open_ = self._store.recent(every=False, limit=1_000)
        if any(now > request.due_at(timeout) for request in open_):
            self._expire()
        return PERIOD.total_seconds()

    def _expire(self) -> None:
        now = self._clock.now()
        expired: list[tuple[Request, Request | None]] = []
        with self._store.leader_transaction(self._fence) as transaction:
            waiting_at = transaction.oldest_waiting_at()
            for request in transaction.open_requests().values():
                if not overdue(request, self._policy, now=now, oldest_waiting_at=waiting_at):
                    continue
                why = f"unanswered for {_written(self._policy.timeout)}"
                transaction.close(request.closed(RequestState.EXPIRED, why, now=now))
                again = None
                if request.resent < self._policy.resend:
                    order = Order(
                        request_id=self._new_request_id(),
                        by=request.requested_by,
                        reason=f"{request.request_id} was unanswered",
                        at=now,
                        resent=request.resent + 1,
                    )
                    again = register(transaction, request.wanted, order, self._rules)
                expired.append((request, again))
        for request, again in expired:
            self._tell(request, again)
        if any(again is not None for _, again in expired):
            self._wake_sender()

    def _tell(self, request: Request, again: Request | None) -> None:
        told = f"request {request.request_id} ({shown(request.wanted)}) is unanswered"
        missing = sorted(request.wanted.days - request.days_done)
        if request.days_done and missing:
            told += f" for {', '.join(map(str, missing))}"
        if again is not None:
            told += f"; asked again as {again.request_id}"
        self._telemetry.alert("request-unanswered", told)


class DoubledWatch:
    """Tells of a request that stands in the mailbox twice: nothing can fence an insert there."""

    def __init__(
        self, store: OutboundStore, mailbox: OutMailbox, clock: Clock, telemetry: Telemetry
    ) -> None:
        self._store = store
        self._mailbox = mailbox
        self._clock = clock
        self._telemetry = telemetry
        self._told: set[RequestId] = set()

    def step(self) -> PauseS:
        # A fast answer closes a request before a write that hangs in the mailbox is let go.
        since = self._clock.now() - LOOKED_FOR
        for request, text in self._store.sent_often(since=since):
            if request.request_id in self._told or request.outbound_after is None:
                continue
            rows = self._mailbox.ids_of(text, after=request.outbound_after)
            if len(rows) > 1:
                self._told.add(request.request_id)
                alert_doubled(self._telemetry, request, rows)
        return PERIOD.total_seconds()


def _written(timeout: timedelta) -> str:
    seconds = int(timeout.total_seconds())
    return f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds} s"
