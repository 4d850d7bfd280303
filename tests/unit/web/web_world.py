"""A small world for the HTTP interface: flights, messages and an entry in memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from flask.testing import FlaskClient
from prometheus_client import CollectorRegistry, Counter

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.past import PastFlight
from msgexchange.flight.reference import Record, RecordKey
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import EventId, Fence, Flid, Identity, MailboxId
from msgexchange.lifecycle.gap import Gap
from msgexchange.lifecycle.states import EventState, InboxEntry, MessageState
from msgexchange.ports import (
    Act,
    ChangeView,
    EventView,
    LeaseView,
    MessageView,
    MetaColumns,
    ReferenceView,
    StoreCounts,
)
from msgexchange.web import WebDeps, create_app
from msgexchange.web.health import Health, Leadership

T0 = datetime(2026, 9, 3, 10, 30, tzinfo=UTC)
TOKEN = "s3cret"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BODY_MAX = 20_000


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def flight(flid: str, **changed: Any) -> FlightState:
    state = FlightState(
        flid=Flid(flid),
        operation_day=date(2026, 9, 3),
        status=FlightStatus.ACTIVE,
        version=3,
        last_message_id=MailboxId(17),
        content={"FLNO": "CZ3101", "GTDT": ({"GATE": "A12", "GTNO": "1"},), "CNCL": ""},
    )
    return replace(state, **changed)


def event(event_id: int, **changed: Any) -> EventView:
    view = EventView(
        event_id=EventId(event_id),
        message_id=MailboxId(17),
        target=Target.MSG,
        type=EventType.NOTICE,
        flid=Flid("900123"),
        state_version=3,
        state=EventState.SENT,
        superseded_by=None,
        attempts=0,
        error=None,
        partition=0,
        offset=4,
        created_at=at(3),
        sent_at=at(4),
    )
    return replace(view, **changed)


def message(message_id: int = 17, **changed: Any) -> MessageView:
    view = MessageView(
        message_id=MailboxId(message_id),
        state=MessageState.SUCCEEDED,
        error_class=None,
        last_cause=None,
        error=None,
        note=None,
        identity=Identity("AODB|FLOP|GTDT|000123"),
        meta=MetaColumns(sndr="AODB", type="FLOP", styp="GTDT", seqn="000123"),
        attempts=0,
        next_attempt_at=None,
        unknown=("XYZW",),
        marked_at=at(5),
        mark_error=None,
        received_at=at(1),
        started_at=at(2),
        finished_at=at(3),
        traceparent=TRACEPARENT,
        flids=(Flid("900123"),),
        events=(event(40),),
        failures=(),
    )
    return replace(view, **changed)


def pending(message_id: int = 18) -> MessageView:
    return message(
        message_id,
        state=MessageState.PENDING,
        identity=None,
        meta=MetaColumns(),
        unknown=(),
        marked_at=None,
        started_at=None,
        finished_at=None,
        traceparent=None,
        flids=(),
        events=(),
    )


@dataclass
class MemoryReads:
    """Flights, versions and messages as they were put in; ``failure`` is raised by each call."""

    states: Sequence[FlightState] = ()
    versions: Mapping[str, Sequence[ChangeView]] = field(default_factory=dict)
    views: Sequence[MessageView] = ()
    failure: Exception | None = None
    stored_records: Sequence[ReferenceView] = ()

    def _answer(self) -> None:
        if self.failure is not None:
            raise self.failure

    def flight(self, flid: Flid) -> FlightState | None:
        self._answer()
        return next((state for state in self.states if state.flid == flid), None)

    def flights(
        self,
        *,
        operation_day: date | None,
        status: str | None,
        after: Flid | None,
        limit: int,
    ) -> Sequence[FlightState]:
        self._answer()
        found = [
            state
            for state in sorted(self.states, key=lambda state: state.flid)
            if operation_day in (None, state.operation_day)
            and status in (None, state.status.value)
            and (after is None or state.flid > after)
        ]
        return found[:limit]

    def changes(self, flid: Flid) -> Sequence[ChangeView]:
        self._answer()
        return self.versions.get(flid, ())

    def message(self, message_id: MailboxId) -> MessageView | None:
        self._answer()
        return next((view for view in self.views if view.message_id == message_id), None)

    def event(self, event_id: EventId) -> EventView | None:
        raise AssertionError("not asked for by any call")

    def events_of(self, flid: Flid, message_ids: Sequence[MailboxId]) -> Sequence[EventView]:
        raise AssertionError("not asked for by any call")

    def acts_on(self, event_id: EventId) -> Sequence[Act]:
        raise AssertionError("not asked for by any call")

    def traceparents(self, message_ids: Sequence[MailboxId]) -> Mapping[MailboxId, str]:
        raise AssertionError("not asked for by any call")

    def references(self, type_: str, *, after: str | None, limit: int) -> Sequence[ReferenceView]:
        self._answer()
        found = [one for one in self.stored_records if one.type == type_]
        return [one for one in found if after is None or one.key > after][:limit]

    def records(self, keys: Iterable[RecordKey]) -> Mapping[RecordKey, Record]:
        self._answer()
        wanted = set(keys)
        stored = {(one.type, one.key): one.record for one in self.stored_records}
        return {key: record for key, record in stored.items() if key in wanted}

    def head(self) -> InboxEntry | None:
        raise AssertionError("not asked for by any call")

    def gaps(self, *, every: bool, limit: int) -> list[Gap]:
        return []

    def counts(self) -> StoreCounts:
        raise AssertionError("not asked for by any call")

    def leadership(self) -> LeaseView:
        self._answer()
        return LeaseView(fence=Fence(3), owner="a", until=T0, now=T0)

    def probe(self) -> None:
        raise AssertionError("not asked for by any call")


@dataclass
class MemoryEntry:
    """Hands out ids from 1 and keeps what it got."""

    received: list[tuple[str, str | None]] = field(default_factory=list)
    failure: Exception | None = None

    def receive(self, text: str, traceparent: str | None) -> MailboxId:
        if self.failure is not None:
            raise self.failure
        self.received.append((text, traceparent))
        return MailboxId(len(self.received))


HEALTHY = Health(live=True, ready=True, leadership=Leadership(role="leader", fence=3))


def deps(
    *,
    reads: MemoryReads | None = None,
    entry: MemoryEntry | None = None,
    health: Health = HEALTHY,
    send_token: str | None = None,
    is_shadow: bool = False,
    written_lives: Callable[[Flid], Sequence[PastFlight]] = lambda _flid: [],
    jaeger_url: str | None = None,
) -> WebDeps:
    registry = CollectorRegistry()
    Counter("msgexchange_messages", "Messages by outcome", registry=registry).inc(7)
    return WebDeps(
        reads=reads or MemoryReads(),
        written_lives=written_lives,
        entry=entry or MemoryEntry(),
        health=lambda: health,
        metrics=registry,
        timezone="Asia/Shanghai",
        topics={Target.MSG: "msg", Target.SCHD: "schd"},
        reference_types=frozenset({"ARPT", "GATS"}),
        send_token=send_token,
        body_bytes_max=BODY_MAX,
        now=lambda: T0,
        is_shadow=is_shadow,
        jaeger_url=jaeger_url,
    )


def client(**given: Any) -> FlaskClient:
    """A client of an application over ``deps(**given)``."""
    return create_app(deps(**given)).test_client()
