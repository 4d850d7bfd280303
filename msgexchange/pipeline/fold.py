"""Messages folded in order in memory: each sees what the ones before it did (spec 3.4, 3.5).

Pure: what it needs of the store was read before, inside the transaction that will commit it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import assert_never

from msgexchange.codec.encode import encode
from msgexchange.flight.decision import Applied, Decision, Outcome, Refused, Skipped
from msgexchange.flight.dynamic import decide_deletion, decide_operation
from msgexchange.flight.events import events_of
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
from msgexchange.flight.past import ended, is_past
from msgexchange.flight.reference import Reference, ReferenceAct, References
from msgexchange.flight.snapshot import clashing, decide_plan
from msgexchange.flight.state import FlightState
from msgexchange.lifecycle.answer import Unmatched, Verdict
from msgexchange.lifecycle.identity import (
    DuplicateOf,
    Holder,
    Own,
    TakesOver,
    bind,
    identity_of,
)
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.pipeline.answers import Answers
from msgexchange.pipeline.incoming import Broken, Crashed, Incoming
from msgexchange.pipeline.leaving import farewell
from msgexchange.pipeline.outcome import Results
from msgexchange.pipeline.provenance import provenance
from msgexchange.pipeline.rules import PumpRules, View
from msgexchange.ports import (
    Batch,
    ChangeRow,
    FlightWrite,
    MessageResult,
    NewEvent,
    SnapshotEntry,
    TextMissing,
)

ERRORS = frozenset({"EROR"})
"""Ignored types a person must hear of (spec 3.4)."""


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
        self.answers = Answers(view.requests, rules.answers, now=now)
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
            requests=self.answers.changed,
            acts=self.answers.acts,
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
                self._ignore(incoming, message, type_)
            case Unsupported(reason):
                return results.fail(incoming, ErrorClass.UNSUPPORTED, reason)
            case Inexpressible(reason):
                return results.fail(incoming, ErrorClass.CODEC_ERROR, reason)
            case Rejected(reason):
                results.die(incoming, ErrorClass.PROTOCOL, reason)
            case Plan() as plan:
                return self._take_plan(incoming, message, plan)
            case Reference() as told:
                self._take_reference(incoming, message, told)
            case (Operation() | Deletion()) as body:
                self._conclude(incoming, message, body, self._decide(incoming, body))
            case _:
                assert_never(message.content)
        return True

    def _ignore(self, incoming: Incoming, message: Message, type_: str) -> None:
        if type_ not in ERRORS:
            self._results.skip(incoming, f"ignored:{type_}")
            return
        failed = self.answers.failed(message.echo, incoming)
        if failed is None:
            self._results.skip_error(incoming, type_, "it names no open request of ours")
            return
        noted = replace(incoming, note=f"fails:{failed.request_id}")
        self._results.skip_error(noted, type_, f"it refuses request {failed.request_id}")

    def _take_plan(self, incoming: Incoming, message: Message, plan: Plan) -> bool:
        verdict: Verdict | None = None
        if plan.kind is PlanKind.RESP:
            verdict = self.answers.judge(incoming, message, plan)
            if self._is_refused(incoming, verdict):
                return True
        leaving = self._leaving(plan)
        if leaving is None:
            return False
        outcome = self._decide_plan(incoming, message, plan, leaving)
        self._conclude(incoming, message, plan, outcome, leaving=leaving, verdict=verdict)
        return True

    def _take_reference(self, incoming: Incoming, message: Message, told: Reference) -> None:
        if told.act is ReferenceAct.RESP:
            verdict = self.answers.judge(incoming, message, told)
            if self._is_refused(incoming, verdict):
                return
            incoming = self.answers.applied(incoming, message, told, verdict)
        self._references.apply(told, incoming.entry.message_id)
        self._results.succeed(incoming)

    def _is_refused(self, incoming: Incoming, verdict: Verdict) -> bool:
        """Skip an answer nobody here asked for, unless a person replays it."""
        if not isinstance(verdict, Unmatched) or self._replaying:
            return False
        self.answers.refused()
        self._results.skip(incoming, f"no-open-request: {verdict.reason}", alert=True)
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
        *,
        leaving: Sequence[FlightState] = (),
        verdict: Verdict | None = None,
    ) -> None:
        match outcome:
            case Applied(decisions):
                self._apply(incoming, message, decisions, leaving)
                if isinstance(body, Plan):
                    self._remember_plan(body, message)
                    if verdict is not None:
                        incoming = self.answers.applied(incoming, message, body, verdict)
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
