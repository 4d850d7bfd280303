"""Messages folded in order in memory: each sees what the ones before it did (spec 3.4, 3.5).

Pure: what it needs of the store was read before, inside the transaction that will commit it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import assert_never

from msgexchange.codec.encode import encode
from msgexchange.flight.decision import Applied, Decision, Outcome, Refused, Skipped
from msgexchange.flight.dynamic import UnknownFlight, decide_deletion, decide_operation
from msgexchange.flight.events import events_of
from msgexchange.flight.merge import difference
from msgexchange.flight.messages import (
    Body,
    Deletion,
    Ignored,
    Inexpressible,
    Malformed,
    Message,
    Operation,
    Plan,
    PlanKind,
    Rejected,
    Unsupported,
)
from msgexchange.flight.past import SweepPolicy, ended, is_past
from msgexchange.flight.reference import Record, RecordKey, Reference, ReferenceAct, References
from msgexchange.flight.snapshot import clashing, decide_plan
from msgexchange.flight.state import FlightState, Json
from msgexchange.ids import Flid, Identity
from msgexchange.lifecycle.failure import FailurePolicy
from msgexchange.lifecycle.identity import (
    DuplicateOf,
    Holder,
    IdentityPolicy,
    Own,
    TakesOver,
    bind,
    identity_of,
)
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.pipeline.incoming import Broken, Crashed, Incoming
from msgexchange.pipeline.leaving import farewell
from msgexchange.pipeline.outcome import Results
from msgexchange.ports import (
    Batch,
    ChangeRow,
    FlightWrite,
    MessageResult,
    NewEvent,
    SnapshotEntry,
    TextMissing,
)

ALERTING_IGNORED = frozenset({"EROR"})
"""Ignored types a person must hear of (spec 3.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpRules:
    """What a site configures of the decisions the pump takes."""

    identity: IdentityPolicy
    failure: FailurePolicy
    unknown_flight: UnknownFlight
    accept_foreign: bool
    timezone: str
    plan_type: str = "SCHD"
    """TYPE of plans, by the catalogue's envelope."""
    sweep: SweepPolicy | None = None
    """When a flight makes way for a plan of another day (spec 5.4); None: never."""
    codec_version: str
    """Software version and catalogue fingerprint: who judged a kind as hopeless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the own database says, read under the locks."""

    holders: Mapping[Identity, Holder]
    flights: Mapping[Flid, FlightState]
    last_versions: Mapping[Flid, int]
    newest_plans: Mapping[date, datetime]
    exhausted_kinds: frozenset[tuple[str, str]]
    changed_at: Mapping[Flid, datetime] = field(default_factory=dict)
    """When each flight that clashes with a plan last changed."""
    references: Mapping[RecordKey, Record] = field(default_factory=dict)


class Fold:
    """Takes messages in id order and gathers one batch; stops before one that must fail."""

    def __init__(
        self,
        view: View,
        rules: PumpRules,
        *,
        now: datetime,
        started_at: datetime,
        replaying: bool = False,
    ) -> None:
        """``replaying``: a person saw what each message would do, and takes it upon himself that
        nobody asked for it, or that a plan of the day is newer; whoever fails stays dead.
        """
        self._rules = rules
        self._replaying = replaying
        self._stored = view.flights
        self._flights = dict(view.flights)
        self._last_versions = view.last_versions
        self._changed_at = view.changed_at
        self._now = now
        self._newest_plans = dict(view.newest_plans)
        self._holders = dict(view.holders)
        self._results = Results(
            rules.failure,
            view.exhausted_kinds,
            now=now,
            started_at=started_at,
            replaying=replaying,
        )
        self._plan_days: dict[date, datetime] = {}
        self.changes: list[ChangeRow] = []
        self.events: list[NewEvent] = []
        self._references = References(view.references)
        self.snapshots: list[SnapshotEntry] = []
        self.leaving: list[FlightState] = []
        """Past flights that make way for a plan of another day, as they are stored."""

    @property
    def messages(self) -> Sequence[MessageResult]:
        """What became of those taken so far."""
        return self._results.messages

    @property
    def references(self) -> References:
        """Reference records as they are now."""
        return self._references

    @property
    def _accepts_unasked(self) -> bool:
        return self._replaying or self._rules.accept_foreign

    @property
    def alerts(self) -> list[tuple[str, str]]:
        """(name, text) of what a person must know, once the batch is committed."""
        return self._results.alerts

    def take(self, incoming: Incoming) -> bool:
        """Fold one message in; False = the batch ends before it.

        It ends before a message that must fail, unless that one stands first, and behind one
        that failed: nobody overtakes it.
        """
        results = self._results
        if results.messages and results.messages[-1].state is MessageState.FAILED:
            return False
        match incoming.judged:
            case TextMissing() as missing:
                results.die(incoming, ErrorClass.MALFORMED, f"raw text: {missing.value}")
            case Malformed(reason):
                results.die(incoming, ErrorClass.MALFORMED, reason)
            case Broken(reason):
                return results.fail(incoming, ErrorClass.INFRA, reason)
            case Crashed(reason, crashes):
                return results.crash(incoming, reason, crashes)
            case Message() as message:
                if not self._take_message(incoming, message):
                    return False
                self._log_plan(incoming, message)
            case _:
                assert_never(incoming.judged)
        return True

    def batch(self) -> Batch:
        """Everything taken, as one commit writes it."""
        touched = {change.flid for change in self.changes}
        left = {state.flid for state in self.leaving}
        return Batch(
            messages=self._results.messages,
            left=[ended(state) for state in self.leaving],
            flights=[
                FlightWrite(
                    before=None if flid in left else self._stored.get(flid),
                    after=state,
                )
                for flid, state in self._flights.items()
                if flid in touched
            ],
            changes=self.changes,
            events=self.events,
            plan_days=self._plan_days,
            references=self._references.changes(),
            exhausted_kinds=self._results.exhausted_kinds,
        )

    def _take_message(self, incoming: Incoming, message: Message) -> bool:
        meta = message.meta
        policy = self._rules.identity
        if policy.include_day_boundary and meta.sent_at is None:
            text = f"META/DTTM {meta.dttm!r} is unreadable, and the identity needs its date"
            self._results.die(incoming, ErrorClass.MALFORMED, text)
            return True
        identity = identity_of(
            sndr=meta.sndr,
            type_=meta.type,
            styp=meta.styp,
            seqn=meta.seqn,
            sent_at=meta.sent_at,
            policy=policy,
        )
        holder = self._holders.get(identity)
        binding = bind(incoming.entry.message_id, meta.sent_at, holder, policy)
        match binding:
            case DuplicateOf(of):
                self._results.skip_duplicate(incoming, of, holder)
                return True
            case TakesOver(of, note):
                incoming = replace(incoming, taken_over_from=of, note=note)
            case Own():
                pass
            case _:
                assert_never(binding)
        incoming = replace(incoming, identity=identity)
        if not self._judge(incoming, message):
            return False
        written = self._results.messages[-1]
        self._holders[identity] = Holder(
            message_id=written.message_id,
            state=written.state,
            error_class=written.error_class,
            sent_at=meta.sent_at,
            discarded=False,
            digest=written.digest,
        )
        return True

    def _judge(self, incoming: Incoming, message: Message) -> bool:
        results = self._results
        match message.content:
            case Ignored(type_):
                results.skip(incoming, f"ignored:{type_}", alert=type_ in ALERTING_IGNORED)
            case Unsupported(reason):
                return results.fail(incoming, ErrorClass.UNSUPPORTED, reason)
            case Inexpressible(reason):
                return results.fail(incoming, ErrorClass.CODEC_ERROR, reason)
            case Rejected(reason):
                results.die(incoming, ErrorClass.PROTOCOL, reason)
            case Plan() as plan:
                leaving = self._leaving(plan)
                if leaving is None:
                    return False
                outcome = self._decide_plan(incoming, message, plan, leaving)
                self._conclude(incoming, message, plan, outcome, leaving)
            case Reference() as told:
                if told.act is ReferenceAct.RESP and not self._accepts_unasked:
                    results.skip(incoming, "no-open-request", alert=True)
                else:
                    self._references.apply(told, incoming.entry.message_id)
                    results.succeed(incoming)
            case (Operation() | Deletion()) as body:
                self._conclude(incoming, message, body, self._decide(incoming, body))
            case _:
                assert_never(message.content)
        return True

    def _leaving(self, plan: Plan) -> Sequence[FlightState] | None:
        """Flights that make way for the plan: those it clashes with, if all of them are past.

        None: one of them was changed by this batch, and only what is stored can be written to
        history. The batch ends before the plan, which then stands first.
        """
        policy = self._rules.sweep
        if policy is None:
            return ()
        clashes = [self._flights[planned.flid] for planned in clashing(self._flights, plan)]
        if any(self._stored.get(state.flid) is not state for state in clashes):
            return None
        past = all(
            is_past(state, changed_at=self._changed_at[state.flid], now=self._now, policy=policy)
            for state in clashes
        )
        return clashes if past else ()

    def _decide_plan(
        self, incoming: Incoming, message: Message, plan: Plan, leaving: Sequence[FlightState]
    ) -> Outcome:
        flights, last_versions = self._flights, self._last_versions
        if leaving:
            ends = {state.flid: ended(state).version for state in leaving}
            flights = {flid: state for flid, state in flights.items() if flid not in ends}
            last_versions = {**last_versions, **ends}
        return decide_plan(
            flights,
            plan,
            cause=incoming.entry.message_id,
            sent_at=message.meta.sent_at,
            newest_sent_at={} if self._replaying else self._newest_plans,
            answers_open_request=self._accepts_unasked,
            last_versions=last_versions,
        )

    def _decide(self, incoming: Incoming, body: Operation | Deletion) -> Outcome:
        cause = incoming.entry.message_id
        match body:
            case Operation() as operation:
                return decide_operation(
                    self._flights,
                    operation,
                    cause=cause,
                    unknown=self._rules.unknown_flight,
                    last_versions=self._last_versions,
                )
            case Deletion() as deletion:
                return decide_deletion(self._flights, deletion, cause=cause)
            case _:
                assert_never(body)

    def _conclude(
        self,
        incoming: Incoming,
        message: Message,
        body: Body,
        outcome: Outcome,
        leaving: Sequence[FlightState] = (),
    ) -> None:
        match outcome:
            case Applied(decisions):
                self._apply(incoming, message, decisions, leaving)
                if isinstance(body, Plan):
                    self._remember_plan(body, message)
                self._results.succeed(incoming)
            case Skipped(reason, alert):
                self._results.skip(incoming, reason, alert=alert)
            case Refused(reason):
                self._results.die(incoming, ErrorClass.PROTOCOL, reason)
            case _:
                assert_never(outcome)

    def _apply(
        self,
        incoming: Incoming,
        message: Message,
        decisions: Sequence[Decision],
        leaving: Sequence[FlightState],
    ) -> None:
        # Bytes first: what cannot be encoded must fail before anything of the message is taken.
        changes = [
            ChangeRow(
                flid=decision.after.flid,
                version=decision.after.version,
                message_id=incoming.entry.message_id,
                changes=encode(provenance(decision)),
            )
            for decision in decisions
        ]
        farewells = [event for state in leaving for event in farewell(state, self._rules.timezone)]
        events = [
            NewEvent(
                target=event.target,
                type=event.type,
                partition_key=event.state.flid,
                flid=event.state.flid,
                message_id=incoming.entry.message_id,
                state_version=event.state.version,
                operation_day=event.state.operation_day,
                payload=None if event.value is None else encode(event.value),
                traceparent=incoming.entry.traceparent,
            )
            for decision in decisions
            for event in events_of(decision, message.meta, timezone=self._rules.timezone)
        ]
        self.leaving += leaving
        self.changes += changes
        self.events += farewells
        self.events += events
        self._flights.update({decision.after.flid: decision.after for decision in decisions})

    def _remember_plan(self, plan: Plan, message: Message) -> None:
        sent_at = message.meta.sent_at
        if plan.kind is PlanKind.ADFT or sent_at is None:
            return
        for day in plan.operation_days:
            newest = self._newest_plans.get(day)
            if newest is None or newest <= sent_at:
                self._newest_plans[day] = self._plan_days[day] = sent_at

    def _log_plan(self, incoming: Incoming, message: Message) -> None:
        """One row for every decoded plan, whatever became of it (spec 2.6)."""
        meta = message.meta
        if meta.type != self._rules.plan_type or isinstance(message.content, Unsupported):
            return
        plan = message.content if isinstance(message.content, Plan) else None
        days = plan.operation_days if plan else ()
        written = self._results.messages[-1]
        self.snapshots.append(
            SnapshotEntry(
                message_id=incoming.entry.message_id,
                received_at=incoming.entry.received_at,
                kind=meta.kind,
                scope_start=min(days, default=None),
                scope_end=max(days, default=None),
                flights=len(plan.flights) if plan else 0,
                outcome=_plan_outcome(written),
                reason=written.error,
            )
        )


def _plan_outcome(written: MessageResult) -> str:
    match written.state:
        case MessageState.SUCCEEDED:
            return "applied"
        case MessageState.DEAD:
            return "rejected"
        case MessageState.FAILED:
            return "failed"
        case _:
            reason = (written.error or "").partition(":")[0]
            return {"duplicate-of": "duplicate", "stale-plan": "stale"}.get(reason, reason)


def provenance(decision: Decision) -> list[list[Json | None]]:
    """``[field, old, new]`` of what one message changed, null for absent (spec 2.3).

    Against what is stored, so that a version can be unfolded again; ``status`` and
    ``operationDay`` stand beside the protocol names. A field it said again as it was has old and
    new alike: whoever replays an older message must know who said it last.
    """
    changed = list(_provenance(decision))
    told = {name for name, _, _ in changed}
    after = decision.after
    again = sorted(set(decision.said) - told)
    values: dict[str, Json | None] = {
        "status": after.status.value,
        "operationDay": after.operation_day.isoformat() if after.operation_day else None,
    }
    content = after.content
    return changed + [
        [name, value, value]
        for name in again
        for value in (values[name] if name in values else content.get(name),)
    ]


def _provenance(decision: Decision) -> Iterator[list[Json | None]]:
    before, after = decision.before, decision.after
    old_status = before.status.value if before else None
    if old_status != after.status.value:
        yield ["status", old_status, after.status.value]
    old_day = before.operation_day.isoformat() if before and before.operation_day else None
    new_day = after.operation_day.isoformat() if after.operation_day else None
    if old_day != new_day:
        yield ["operationDay", old_day, new_day]
    old = before.content if before else {}
    changes = difference(old, after.content)
    for name in sorted({*changes.set, *changes.replaced, *changes.cleared}):
        yield [name, old.get(name), after.content.get(name)]
