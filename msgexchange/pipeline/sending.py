"""MAILBOX:out: requests in order, each written once; what cannot be known goes to a person.

State is committed before the insert, so a write that was interrupted is known as one whose outcome
must be looked up: rows above the remembered id with exactly our text (spec 4.5).
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgexchange.clock import Clock
from msgexchange.ids import EventId, Fence
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.request import Request
from msgexchange.pipeline.delivery import REFUSED
from msgexchange.pipeline.leadership import Right
from msgexchange.pipeline.step import NOW, PauseS
from msgexchange.ports import InsertUnknown, MessageFault, RetryNow, Telemetry
from msgexchange.ports.outbound import OutMailbox
from msgexchange.ports.requests import OutboundEntry, OutboundStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingRules:
    """``rows_removed``: the owner deletes rows it has sent, so that a missing one proves nothing.

    ``settle``: how long after an interrupted write its row may still appear.
    """

    rows_removed: bool = False
    settle: timedelta = timedelta(seconds=2)
    attempts_max: int = 5
    backoff: Backoff = field(default_factory=Backoff)
    idle_poll: timedelta = timedelta(seconds=1)


class SendRequests:
    """The oldest waiting request a step: written, confirmed, cancelled or handed to a person."""

    def __init__(
        self,
        *,
        store: OutboundStore,
        mailbox: OutMailbox,
        clock: Clock,
        fence: Fence,
        right: Right,
        rules: SendingRules,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._mailbox = mailbox
        self._clock = clock
        self._fence = fence
        self._right = right
        self._rules = rules
        self._telemetry = telemetry
        self._clean: EventId | None = None
        """Its last insert was refused or lost before its commit: there is no row of it."""
        self._in_doubt: tuple[EventId, float] | None = None
        """Since when this process knows that nobody knows."""

    def step(self) -> PauseS:
        entry = self._store.next()
        if entry is None:
            return self._rules.idle_poll.total_seconds()
        now = self._clock.now()
        if entry.next_attempt_at is not None and entry.next_attempt_at > now:
            return max((entry.next_attempt_at - now).total_seconds(), 0.001)
        if entry.request.sends and entry.event_id != self._clean:
            return self._resolve(entry)
        return self._send(entry)

    def _resolve(self, entry: OutboundEntry) -> PauseS:
        """An earlier write may have been made: look before anything else."""
        rows = self._mailbox.ids_of(entry.text, after=_after(entry.request))
        if rows:
            self._confirm(entry, rows[0])
            if len(rows) > 1:
                alert_doubled(self._telemetry, entry.request, rows)
            return NOW
        settling_s = self._settling_s(entry)
        if settling_s > 0:
            return settling_s
        if self._is_unknowable(entry):
            why = (
                "whether it was sent cannot be known: its write was interrupted and the mailbox's "
                "owner removes rows; ask the AODB's people, then register it again if need be"
            )
            self._give_up(entry, why, closes=False)
            return NOW
        return self._send(entry)

    def _settling_s(self, entry: OutboundEntry) -> float:
        """A commit that was under way when a process or a connection ended lands soon after."""
        now_s = self._clock.monotonic()
        if self._in_doubt is None or self._in_doubt[0] != entry.event_id:
            self._in_doubt = entry.event_id, now_s
        return self._in_doubt[1] + self._rules.settle.total_seconds() - now_s

    def _is_unknowable(self, entry: OutboundEntry) -> bool:
        """Where rows are removed: by the settings, or because one that was there before is gone."""
        if self._rules.rows_removed:
            return True
        # A table that was empty shows it by the row of the request before.
        before = _after(entry.request) or self._store.last_row()
        return before is not None and not self._mailbox.has(before)

    def _send(self, entry: OutboundEntry) -> PauseS:
        request = entry.request
        if not request.is_open:
            self._cancel(entry)
            return NOW
        after = self._mailbox.newest_id() if not request.sends else _after(request)
        if not self._store.begin(self._fence, entry, after=after, now=self._clock.now()):
            self._cancel(entry)
            return NOW
        self._clean = entry.event_id
        if not self._right.holds:
            raise RetryNow("the right to lead has to be renewed first")
        self._clean = self._in_doubt = None
        try:
            row = self._mailbox.insert(entry.text)
        except InsertUnknown as doubt:
            self._telemetry.log("request.insert-unknown", reason=str(doubt))
            return NOW
        except MessageFault as refusal:
            self._clean = entry.event_id
            self._charge(entry, str(refusal))
            return NOW
        except Exception:
            # Anything else ended before the commit was asked for.
            self._clean = entry.event_id
            raise
        self._confirm(entry, row)
        return NOW

    def _confirm(self, entry: OutboundEntry, row: int) -> None:
        self._store.sent(self._fence, entry, row, now=self._clock.now())
        self._telemetry.count("events_sent", 1, target="MAILBOX:out")
        self._telemetry.log("request.sent", request=entry.request.request_id, row=row)

    def _cancel(self, entry: OutboundEntry) -> None:
        self._store.cancel(self._fence, entry, "its request was closed before it was sent")
        self._telemetry.log("request.cancelled", request=entry.request.request_id)

    def _charge(self, entry: OutboundEntry, error: str) -> None:
        attempts = entry.attempts + 1
        if attempts >= self._rules.attempts_max:
            self._give_up(entry, f"it could not be written: {error}", closes=True)
            return
        now = self._clock.now()
        again_at: datetime = now + self._rules.backoff.after(attempts)
        self._store.charge(
            self._fence, entry, error, next_attempt_at=again_at, closes=False, now=now
        )
        self._tell_failure(entry, attempts, error, again_at)

    def _give_up(self, entry: OutboundEntry, why: str, *, closes: bool) -> None:
        """The event dies; its request stays open where an answer may still come."""
        self._store.charge(
            self._fence, entry, why, next_attempt_at=None, closes=closes, now=self._clock.now()
        )
        self._tell_failure(entry, entry.attempts + 1, why, None)
        self._telemetry.alert("request-not-sent", f"request {entry.request.request_id}: {why}")

    def _tell_failure(
        self, entry: OutboundEntry, attempts: int, error: str, again_at: datetime | None
    ) -> None:
        self._telemetry.log(
            "request.failed",
            request=entry.request.request_id,
            event_id=entry.event_id,
            error_class=REFUSED,
            attempts=attempts,
            next_attempt_at=again_at,
            error=error,
        )


def alert_doubled(telemetry: Telemetry, request: Request, rows: object) -> None:
    """Nothing fences the mailbox: a write of an earlier leader may land after ours."""
    text = f"request {request.request_id} stands in the mailbox more than once: rows {rows}"
    telemetry.alert("request-doubled", text)


def _after(request: Request) -> int:
    assert request.outbound_after is not None
    return request.outbound_after
