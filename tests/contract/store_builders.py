"""What the store suites say of messages, flights and events, with defaults for the rest."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.state import Content, FlightState, FlightStatus
from msgexchange.ids import Fence, Flid, Identity, MailboxId
from msgexchange.lifecycle.states import MessageState
from msgexchange.lifecycle.watermark import Gap, MailboxRow, ScanPlan
from msgexchange.ports import (
    Batch,
    ChangeRow,
    FlightWrite,
    MessageResult,
    MetaColumns,
    NewEvent,
)
from msgexchange.store.sql_store import SqlStore

T0 = datetime(2026, 9, 3, 10, 0, 0, 123456, tzinfo=UTC)
DAY = date(2026, 9, 3)
CODEC = "1.0/abc"
RICH: Content = {
    "FLNO": "CZ3101",
    "CNCL": "",
    "RMRK": "登机口变更 \U00020bb7",
    "GTDT": ({"GTNO": "1", "GATE": "A12", "GOTM": "03SEP261804"}, {"GTNO": "2", "GATE": ""}, {}),
    "DELY": (),
    "ROUT": ({"RONO": "1", "STOP": "PEK"},),
    "ERUT": ({"RONO": "1", "STOP": "SHA"}, {"RONO": "1", "STOP": "CAN", "NEW": {"A": ("x",)}}),
    "FDIV": {"DEST": "HKG", "RSON": "", "WHOM": "PILOT"},
    "SRVT": {"WCHR": ({"SEAT": "1A"}, "2B")},
    "NEWC": ({"A": "1"},),
    "NEWS": "y",
}
"""Something of every kind: mapped, unmapped, empty."""


def later(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def lead(store: SqlStore, owner: str = "me") -> Fence:
    """The lease is over at once: whoever leads next need not wait."""
    fence = store.leader.take_lease(owner, timedelta(0))
    assert fence is not None
    return fence


def scan(
    ids: Iterable[int],
    watermark: int,
    *,
    removed: tuple[int, ...] = (),
    written: tuple[Gap, ...] = (),
) -> ScanPlan:
    return ScanPlan(
        enqueue=tuple(MailboxRow(MailboxId(id_), 100 + id_) for id_ in ids),
        watermark=watermark,
        removed=removed,
        written=written,
        open_gaps=(),
    )


def receive(store: SqlStore, *ids: int, at: datetime = T0) -> None:
    """Take these ids in; W moves to the last of them."""
    with store.intake.transaction(None) as transaction:
        transaction.apply(scan(ids, max(ids)), now=at)


def result(id_: int, state: MessageState = MessageState.SUCCEEDED, **given: Any) -> MessageResult:
    defaults: dict[str, Any] = {
        "meta": MetaColumns(
            sndr="AODB", type="FLOP", styp="STAT", seqn=f"{id_:06d}", dttm="20260903183000"
        ),
        "identity": Identity(f"AODB|FLOP|STAT|{id_:06d}"),
        "sent_at": datetime(2026, 9, 3, 18, 30),
        "error_class": None,
        "last_cause": None,
        "error": None,
        "attempts": 0,
        "next_attempt_at": None,
        "started_at": T0,
    }
    return MessageResult(message_id=MailboxId(id_), state=state, **(defaults | given))


def flight(
    flid: str, version: int = 1, content: Content | None = None, **given: Any
) -> FlightState:
    defaults: dict[str, Any] = {
        "operation_day": DAY,
        "status": FlightStatus.ACTIVE,
        "last_message_id": MailboxId(version),
    }
    return FlightState(
        flid=Flid(flid),
        version=version,
        content={"FLNO": f"CZ{flid}"} if content is None else content,
        **(defaults | given),
    )


def new(state: FlightState) -> FlightWrite:
    return FlightWrite(before=None, after=state)


def moved(before: FlightState, content: Content, **given: Any) -> FlightWrite:
    return FlightWrite(
        before=before, after=flight(before.flid, before.version + 1, content, **given)
    )


def change(flid: str, version: int, id_: int, changes: bytes = b"[]") -> ChangeRow:
    return ChangeRow(flid=Flid(flid), version=version, message_id=MailboxId(id_), changes=changes)


def event(
    flid: str = "1",
    *,
    target: Target = Target.SCHD,
    id_: int = 1,
    version: int = 1,
    payload: bytes | None = b'{"a":1}',
) -> NewEvent:
    return NewEvent(
        target=target,
        type=EventType.NOTICE if target is Target.MSG else EventType.UPSERT,
        partition_key=flid,
        flid=Flid(flid),
        message_id=MailboxId(id_),
        state_version=version,
        operation_day=DAY,
        payload=payload,
        traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
    )


def commit(store: SqlStore, fence: Fence, batch: Batch, *, now: datetime = T0) -> None:
    """One pump transaction; what is written was read in it, as the pump does."""
    with store.pump.transaction(fence) as transaction:
        transaction.flights([write.after.flid for write in batch.flights])
        transaction.commit_batch(batch, now=now, codec_version=CODEC)


def append(store: SqlStore, fence: Fence, *events: NewEvent, now: datetime = T0) -> None:
    commit(store, fence, Batch(messages=(), events=events), now=now)


def stored(store: SqlStore, fence: Fence, flids: Sequence[str]) -> list[FlightState]:
    with store.pump.transaction(fence) as transaction:
        found = transaction.flights([Flid(flid) for flid in flids])
    return [found[Flid(flid)] for flid in flids]


class Lost(Exception):
    """What ends a transaction before its commit."""


def abandon(store: SqlStore, fence: Fence, batch: Batch) -> None:
    """Write a batch and fail before the commit; raises ``Lost``."""
    with store.pump.transaction(fence) as transaction:
        transaction.commit_batch(batch, now=T0, codec_version=CODEC)
        raise Lost
