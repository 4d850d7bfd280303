"""Replay orders carried out by the leader's pump, between two batches (spec 5.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from msgexchange.clock import Clock
from msgexchange.ids import Fence, MailboxId
from msgexchange.pipeline.incoming import Decode
from msgexchange.pipeline.leaving import Unwritten, WayMaking
from msgexchange.pipeline.letters import NotDone
from msgexchange.pipeline.prediction import Prediction, difference_of
from msgexchange.pipeline.rehearsal import Rehearsal, rehearse
from msgexchange.pipeline.replaying import ids_of, texts_of
from msgexchange.pipeline.rules import PumpRules
from msgexchange.pipeline.step import PauseS, Step
from msgexchange.pipeline.traced import failures, in_context, replayed
from msgexchange.ports import (
    Act,
    Fenced,
    Mailbox,
    PortError,
    ReplayOrder,
    Replays,
    ReplayTransaction,
    RetryNow,
    SnapshotEntry,
    Telemetry,
    Text,
    Unavailable,
)
from msgexchange.ports.tracing import UNTRACED, Tracing, Working

BEGUN_MAX = 3
"""An order under which so many processes ended is not tried again."""
LOOK_EVERY_S = 1.0
DIFFERENCES_TOLD = 20


class ReplayOrders:
    """Takes the oldest order and carries it out whole, or refuses it whole."""

    def __init__(
        self,
        *,
        store: Replays,
        mailbox: Mailbox,
        clock: Clock,
        decode: Decode,
        fence: Fence,
        rules: PumpRules,
        telemetry: Telemetry,
        text_bytes_max: int,
        wake_delivery: Callable[[], None],
        log_snapshot: Callable[[SnapshotEntry], None],
        way_making: WayMaking | None = None,
        tracing: Tracing = UNTRACED,
    ) -> None:
        self._tracing = tracing
        self._log_snapshot = log_snapshot
        self._store = store
        self._mailbox = mailbox
        self._clock = clock
        self._decode = decode
        self._fence = fence
        self._rules = rules
        self._telemetry = telemetry
        self._text_bytes_max = text_bytes_max
        self._wake_delivery = wake_delivery
        self._way = way_making or WayMaking(history=None)

    def carry_out_next(self) -> bool:
        """One order; False if none waits."""
        order = self._store.next_order()
        if order is None:
            return False
        if order.begun >= BEGUN_MAX:
            why = f"{order.begun} processes ended while they carried it out"
            self._refuse(order, [why])
            return True
        self._store.begin(self._fence, order.order_id)
        try:
            self._carry_out(order)
        except (Unavailable, RetryNow, Fenced):
            self._interrupted(order)
            raise
        except MemoryError:
            raise
        except Exception as fault:  # noqa: BLE001 - whatever it is, the order must not come again
            self._refuse(order, [f"carrying it out failed: {type(fault).__name__}: {fault}"])
        return True

    def _interrupted(self, order: ReplayOrder) -> None:
        try:
            self._store.interrupted(self._fence, order.order_id)
        except PortError:
            # It then counts as one process that ended; there may be some of them.
            return

    def _carry_out(self, order: ReplayOrder) -> None:
        ids = ids_of(order)
        with self._store.reading() as reads:
            letters = reads.letters(ids)
        try:
            texts = texts_of(
                letters, self._store, self._mailbox, text_bytes_max=self._text_bytes_max
            )
        except NotDone as refusal:
            self._refuse(order, [str(refusal)])
            return
        while True:
            try:
                self._transact(order, ids, texts)
            except Unwritten as unwritten:
                self._way.write(unwritten.flights, now=self._clock.now())
            else:
                return

    def _transact(
        self, order: ReplayOrder, ids: Sequence[MailboxId], texts: Mapping[MailboxId, Text]
    ) -> None:
        """One transaction; ``Unwritten`` if flights would leave that history does not hold."""
        now = self._clock.now()
        working: Working | None = None
        with self._store.transaction(self._fence) as transaction:
            if transaction.open_order(order.order_id) is None:
                return
            found = rehearse(
                transaction, ids, texts, decode=self._decode, rules=self._rules, now=now
            )
            differences = _differences(order, found.predictions)
            if differences:
                self._write_refusal(transaction, order, differences)
            else:
                self._way.confirm(found.fold.leaving)
                batch = found.fold.batch()
                # What was dead or skipped is marked already, or still due to be.
                batch = replace(batch, exhausted_kinds=())
                working = self._tracing.replaying(
                    replayed(found.incoming, batch.messages, since=now, until=self._clock.now()),
                    order_id=order.order_id,
                    started_at=now,
                )
                batch = in_context(batch, working.contexts)
                transaction.commit_replay(
                    batch,
                    order=order,
                    act=_done(order, found.predictions, now),
                    now=now,
                    codec_version=self._rules.codec_version,
                )
        self._way.gone()
        if working is None:
            self._tell_refusal(order, differences)
        else:
            working.committed()
            self._tell(order, found, working.contexts)

    def _refuse(self, order: ReplayOrder, why: Sequence[str]) -> None:
        with self._store.transaction(self._fence) as transaction:
            if transaction.open_order(order.order_id) is None:
                return
            self._write_refusal(transaction, order, why)
        self._tell_refusal(order, why)

    def _write_refusal(
        self, transaction: ReplayTransaction, order: ReplayOrder, why: Sequence[str]
    ) -> None:
        act = Act(
            at=self._clock.now(),
            by=order.by,
            act="replay",
            subject=f"order {order.order_id}",
            reason=order.reason,
            outcome=f"refused, nothing was changed: {_told(why)}",
            outcomes=dict.fromkeys(ids_of(order), "not replayed"),
        )
        transaction.refuse(order, act)

    def _tell_refusal(self, order: ReplayOrder, why: Sequence[str]) -> None:
        self._telemetry.log("replay.refused", order=order.order_id, why=_told(why))

    def _tell(
        self, order: ReplayOrder, found: Rehearsal, contexts: Mapping[MailboxId, str]
    ) -> None:
        for fields in failures(found.incoming, found.fold.messages, contexts):
            self._telemetry.log("message.failed", **fields)
        if found.fold.events:
            self._wake_delivery()
        for name, text in found.fold.alerts:
            self._telemetry.alert(name, text)
        for snapshot in found.fold.snapshots:
            self._log_snapshot(snapshot)
        self._telemetry.log("replay.done", order=order.order_id, messages=len(found.fold.messages))


class PumpWithOrders:
    """The pump, and before its next batch the orders that wait; there is exactly one."""

    def __init__(self, pump: Step, orders: ReplayOrders, clock: Clock) -> None:
        self._pump = pump
        self._orders = orders
        self._clock = clock
        self._look_at_s = 0.0

    def step(self) -> PauseS:
        if self._clock.monotonic() >= self._look_at_s:
            while self._orders.carry_out_next():
                continue
            self._look_at_s = self._clock.monotonic() + LOOK_EVERY_S
        return min(self._pump.step(), LOOK_EVERY_S)


def _differences(order: ReplayOrder, found: Sequence[Prediction]) -> Sequence[str]:
    promised: dict[int, Mapping[str, Any]] = {
        promise["id"]: promise for promise in orjson.loads(order.plan)
    }
    told = [
        text for one in found if (text := difference_of(promised[one.message_id], one)) is not None
    ]
    back = [one for one in found if one.backwards]
    if back and not order.allow_regression:
        told += [
            f"message {one.message_id} would take {change.about} {change.field} back behind "
            f"newer message {change.backwards.message_id}"
            for one in back
            for change in one.backwards
            if change.backwards is not None
        ]
    return told


def _done(order: ReplayOrder, found: Sequence[Prediction], now: Any) -> Act:
    return Act(
        at=now,
        by=order.by,
        act="replay",
        subject=f"order {order.order_id}",
        reason=order.reason,
        outcome="done" + (", regression allowed" if order.allow_regression else ""),
        outcomes={one.message_id: f"{one.was} -> {one.outcome}" for one in found},
    )


def _told(why: Sequence[str]) -> str:
    more = len(why) - DIFFERENCES_TOLD
    return "; ".join(why[:DIFFERENCES_TOLD]) + (f"; and {more} more" if more > 0 else "")
