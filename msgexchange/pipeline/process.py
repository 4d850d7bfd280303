"""The pump: heads of the line, decided and committed in one transaction (spec 3.3-3.6)."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from msgexchange.clock import Clock
from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.head_of_line import Idle, WaitUntil, Work, next_step
from msgexchange.lifecycle.states import TERMINAL, InboxEntry, MessageState
from msgexchange.pipeline.attempt import LOSSES_CHARGED, CarefulStart, Losses
from msgexchange.pipeline.fold import Fold
from msgexchange.pipeline.incoming import Broken, Crashed, Decode, Incoming, judge, within
from msgexchange.pipeline.leaving import Unwritten, WayMaking
from msgexchange.pipeline.marking import Marking
from msgexchange.pipeline.rules import PumpRules
from msgexchange.pipeline.step import NOW, PauseS
from msgexchange.pipeline.traced import attempted, failure_fields, in_context
from msgexchange.pipeline.view import view_of
from msgexchange.ports import (
    Batch,
    Dependency,
    Fenced,
    HeadsMoved,
    Mailbox,
    MessageFault,
    MessageResult,
    PortError,
    PumpStore,
    RetryNow,
    SnapshotEntry,
    Telemetry,
    Text,
    TextMissing,
    Unavailable,
)
from msgexchange.ports.tracing import UNTRACED, Tracing

DUPLICATES_RUN_ALERT = 20
"""A run of so many duplicates is told: SEQN may have restarted (spec 3.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpBounds:
    """How much one transaction may hold; ``batch_min`` grows to ``batch_max`` under backlog."""

    batch_min: int = 50
    batch_max: int = 200
    flights_max: int = 2_000
    batch_text_bytes_max: int = 32 << 20
    text_bytes_max: int = 64 << 20
    idle_poll: timedelta = timedelta(seconds=1)


class Pump:
    """Works the head of the line, one batch a step. There is exactly one."""

    def __init__(
        self,
        *,
        store: PumpStore,
        mailbox: Mailbox,
        clock: Clock,
        decode: Decode,
        fence: Fence,
        rules: PumpRules,
        bounds: PumpBounds,
        telemetry: Telemetry,
        marks: bool,
        wake_delivery: Callable[[], None],
        way_making: WayMaking | None = None,
        green_at_s: Callable[[Dependency], float] = lambda _dependency: float("-inf"),
        tracing: Tracing = UNTRACED,
    ) -> None:
        self._store = store
        self._mailbox = mailbox
        self._clock = clock
        self._decode = decode
        self._fence = fence
        self._rules = rules
        self._bounds = bounds
        self._telemetry = telemetry
        self._tracing = tracing
        self._marking = Marking(
            store=store,
            mailbox=mailbox,
            clock=clock,
            fence=fence,
            telemetry=telemetry,
            marks=marks,
        )
        self._wake_delivery = wake_delivery
        self._way = way_making or WayMaking(history=None)
        self._batch = bounds.batch_min
        self._outage = timedelta()
        self._duplicates_run = 0
        self._careful = CarefulStart(store, clock, fence)
        self._losses = Losses(clock, green_at_s)

    def step(self) -> PauseS:
        now = self._clock.now()
        heads = self._store.heads(1 if self._careful.on else self._batch)
        self._grow(len(heads))
        step = next_step(heads, now=now, text_bytes_max=self._bounds.batch_text_bytes_max)
        match step:
            case Idle():
                self._careful.over()
                self._marking.rest()
                return self._bounds.idle_poll.total_seconds()
            case WaitUntil(_, at):
                self._marking.rest()
                return max((at - now).total_seconds(), 0.001)
            case Work(entries):
                try:
                    self._begin(entries, started_at=now)
                except HeadsMoved as moved:
                    self._telemetry.log("pump.heads-moved", reason=str(moved))
                except Unavailable as outage:
                    self._lost(entries, outage, started_at=now)
                return NOW

    def resumed(self, pause: timedelta) -> None:
        """An outage of this length is over; the head's deadline moves by it (spec 3.3)."""
        self._outage += pause

    def close(self) -> None:
        """The last step is done."""
        try:
            self._marking.write()
        except PortError as failure:
            self._telemetry.log("mark.failed", reason=str(failure))

    def _grow(self, heads: int) -> None:
        full = heads >= self._batch
        self._batch = (
            min(self._batch * 2, self._bounds.batch_max) if full else self._bounds.batch_min
        )

    def _begin(self, entries: Sequence[InboxEntry], *, started_at: datetime) -> None:
        if not self._careful.on:
            self._work(entries, started_at=started_at)
            return
        head = entries[0]
        crashed = self._careful.crashed(head.message_id)
        if crashed is not None:
            text = self._mailbox.texts([head.message_id], bytes_max=self._bounds.text_bytes_max)
            self._charge(head, crashed, text.get(head.message_id), started_at)
            self._careful.charged()
            return
        self._careful.begin(head.message_id)
        try:
            self._work(entries[:1], started_at=started_at)
        except PortError:
            self._careful.interrupted()
            raise
        self._careful.committed()

    def _lost(
        self, entries: Sequence[InboxEntry], outage: Unavailable, *, started_at: datetime
    ) -> None:
        """Raise ``outage`` again, or charge the head that loses connections again and again."""
        head = entries[0]
        self._careful.again(len(entries))
        if not self._losses.lost(head.message_id, outage.dependency):
            raise outage
        reason = f"the connection was lost {LOSSES_CHARGED} times on this message: {outage}"
        self._charge(head, Broken(reason), None, started_at)
        self._losses.charged()

    def _charge(
        self,
        head: InboxEntry,
        against: Broken | Crashed,
        text: Text | None,
        started_at: datetime,
    ) -> None:
        """Hold a failure against the head alone, without decoding it."""
        kept = None if isinstance(text, TextMissing) else text
        self._commit([Incoming(entry=head, text=kept, judged=against)], started_at)

    def _work(self, entries: Sequence[InboxEntry], *, started_at: datetime) -> None:
        readable = [
            entry.message_id
            for entry in entries
            if entry.text_bytes is not None and entry.text_bytes <= self._bounds.text_bytes_max
        ]
        texts = self._read(readable)
        incoming = within(
            (
                judge(
                    self._after_outage(entry),
                    texts.get(entry.message_id, _missing(entry)),
                    self._decode,
                    now=self._clock.now,
                )
                for entry in entries
            ),
            self._bounds.flights_max,
        )
        self._commit_or_halve(incoming, started_at)
        self._outage = timedelta()

    def _read(self, ids: Sequence[MailboxId]) -> dict[MailboxId, Text | Broken]:
        """Raw texts; a row that cannot be read is found by halving and held against it alone."""
        try:
            return dict(self._mailbox.texts(ids, bytes_max=self._bounds.text_bytes_max))
        except MessageFault as fault:
            if len(ids) == 1:
                return {ids[0]: Broken(f"reading failed: {fault}")}
        middle = len(ids) // 2
        return {**self._read(ids[:middle]), **self._read(ids[middle:])}

    def _after_outage(self, entry: InboxEntry) -> InboxEntry:
        if entry.processing_started_at is None or not self._outage:
            return entry
        return replace(entry, processing_started_at=entry.processing_started_at + self._outage)

    def _commit_or_halve(self, incoming: Sequence[Incoming], started_at: datetime) -> bool:
        """Commit; after a database error in halves, so that one poisoned message is charged alone.

        False when a message failed: those behind it wait.
        """
        try:
            return self._commit(incoming, started_at)
        except (MemoryError, Unavailable, RetryNow, Fenced, HeadsMoved):
            raise
        except Exception as fault:  # noqa: BLE001 - charged to the message that causes it
            if len(incoming) == 1:
                broken = Broken(f"the commit failed: {type(fault).__name__}: {fault}")
                return self._commit([replace(incoming[0], judged=broken)], started_at)
        middle = len(incoming) // 2
        return self._commit_or_halve(incoming[:middle], started_at) and self._commit_or_halve(
            incoming[middle:], started_at
        )

    def _commit(self, incoming: Sequence[Incoming], started_at: datetime) -> bool:
        """Everything of these messages, or nothing. False if the first failed."""
        while True:
            try:
                return self._transact(incoming, started_at)
            except Unwritten as unwritten:
                self._way.write(unwritten.flights, now=self._clock.now())

    def _transact(self, incoming: Sequence[Incoming], started_at: datetime) -> bool:
        """One transaction; ``Unwritten`` if flights would leave that history does not hold."""
        now = self._clock.now()
        marked = self._marking.made()
        with self._store.transaction(self._fence) as transaction:
            transaction.confirm_heads([one.entry for one in incoming])
            view = view_of(transaction, incoming, self._rules)
            fold = Fold(view, self._rules, now=now, started_at=started_at)
            decided_at = [self._clock.now()]
            for one in incoming:
                if not self._take(fold, one):
                    break
                decided_at.append(self._clock.now())
            self._way.confirm(fold.leaving)
            batch = replace(
                self._with_intents(fold.batch()),
                marked=marked,
                closes_attempt=self._careful.on,
            )
            working = self._tracing.working(
                attempted(incoming, batch.messages, decided_at), started_at=started_at
            )
            batch = in_context(batch, working.contexts)
            transaction.commit_batch(batch, now=now, codec_version=self._rules.codec_version)
        self._way.gone()
        self._marking.told(marked)
        working.committed()
        self._after_commit(batch, fold.snapshots, fold.alerts)
        for how, answers in fold.answers.counts.items():
            self._telemetry.count("answers", answers, matched=how)
        outcomes = Counter((one.state.value, one.error_class or "") for one in batch.messages)
        for (state, error_class), messages in outcomes.items():
            self._telemetry.count("messages", messages, state=state, error_class=error_class)
        for one, result in zip(incoming, batch.messages, strict=False):
            self._report(one, result, now)
        self._telemetry.observe("commit_seconds", (self._clock.now() - now).total_seconds())
        return all(result.state in TERMINAL for result in batch.messages)

    def _with_intents(self, batch: Batch) -> Batch:
        if self._marking.intended:
            return batch
        unmarked = [replace(result, mark_intended=False) for result in batch.messages]
        return replace(batch, messages=unmarked)

    def _take(self, fold: Fold, one: Incoming) -> bool:
        try:
            return fold.take(one)
        except MemoryError:
            raise
        except Exception as failure:  # noqa: BLE001 - charged to the message that causes it
            # The fold takes nothing of a message before its decision is whole.
            reason = f"deciding failed: {type(failure).__name__}: {failure}"
            return fold.take(replace(one, judged=Broken(reason)))

    def _after_commit(
        self,
        batch: Batch,
        snapshots: Sequence[SnapshotEntry],
        alerts: Sequence[tuple[str, str]],
    ) -> None:
        if batch.events:
            self._wake_delivery()
        self._marking.committed([m.message_id for m in batch.messages if m.state in TERMINAL])
        for name, text in alerts:
            self._telemetry.alert(name, text)
        for snapshot in snapshots:
            self._log_snapshot(snapshot)

    def _log_snapshot(self, snapshot: SnapshotEntry) -> None:
        try:
            self._store.log_snapshot(snapshot)
        except (Unavailable, RetryNow, MessageFault) as failure:
            self._telemetry.log("snapshot-log.failed", reason=str(failure))

    def _report(self, one: Incoming, result: MessageResult, now: datetime) -> None:
        duplicate = result.error is not None and result.error.startswith("duplicate-of:")
        self._duplicates_run = self._duplicates_run + 1 if duplicate else 0
        if self._duplicates_run == DUPLICATES_RUN_ALERT:
            text = f"{DUPLICATES_RUN_ALERT} duplicates in a row, up to message {result.message_id}"
            self._telemetry.alert("duplicates-run", text)
        if one.message is not None:
            for name in one.message.unknown:
                self._telemetry.count("unknown_names", element=name)
            for name in one.message.unreadable_times:
                self._telemetry.count("unreadable_times", element=name)
        if result.state in TERMINAL:
            latency_s = (now - one.entry.received_at).total_seconds()
            self._telemetry.observe("message_latency_seconds", latency_s)
        if result.state in (MessageState.FAILED, MessageState.DEAD):
            self._telemetry.log("message.failed", **failure_fields(one, result))


def _missing(entry: InboxEntry) -> TextMissing:
    return TextMissing.NO_TEXT if entry.text_bytes is None else TextMissing.TOO_LARGE
