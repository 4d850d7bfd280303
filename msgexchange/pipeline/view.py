"""What a fold needs of the store: read in a constant number of statements, whatever it is for."""

from collections.abc import Iterable, Mapping, Sequence

from msgexchange.flight.messages import (
    Ignored,
    Inexpressible,
    Message,
    Plan,
    PlanKind,
    Unsupported,
)
from msgexchange.flight.reference import Reference, ReferenceAct
from msgexchange.flight.snapshot import clashing
from msgexchange.flight.state import FlightState
from msgexchange.ids import Flid, Identity
from msgexchange.lifecycle.identity import IdentityPolicy, identity_of
from msgexchange.pipeline.incoming import Incoming
from msgexchange.pipeline.rules import PumpRules, View
from msgexchange.ports import FoldReads


def view_of(reads: FoldReads, incoming: Sequence[Incoming], rules: PumpRules) -> View:
    """Everything these messages may ask for."""
    messages = [one.message for one in incoming if one.message]
    flids = {flid for one in incoming for flid in one.flids}
    days = {
        day
        for message in messages
        if isinstance(message.content, Plan)
        for day in message.content.operation_days
    }
    doubtful = any(isinstance(m.content, Unsupported | Inexpressible) for m in messages)
    flights = reads.flights(flids) if flids else {}
    unknown = flids - flights.keys()
    clashes = set() if rules.sweep is None else _clashes(flights, messages)
    told = [m.content for m in messages if isinstance(m.content, Reference)]
    records = {key for reference in told for key in reference.keys}
    return View(
        holders=reads.holders(_identities(messages, rules.identity)) if messages else {},
        flights=flights,
        last_versions=reads.last_versions(unknown) if unknown else {},
        newest_plans=reads.newest_plans(days) if days else {},
        exhausted_kinds=reads.exhausted_kinds(rules.codec_version) if doubtful else frozenset(),
        changed_at=reads.changed_at(clashes) if clashes else {},
        references=reads.references(records) if records else {},
        requests=reads.requests() if any(map(_may_end_a_request, messages)) else {},
    )


def _may_end_a_request(message: Message) -> bool:
    match message.content:
        case Plan(kind=PlanKind.RESP) | Reference(act=ReferenceAct.RESP):
            return True
        case Ignored():
            return message.echo is not None
        case _:
            return False


def _clashes(flights: Mapping[Flid, FlightState], messages: Iterable[Message]) -> set[Flid]:
    """Stored flights that may have to make way for a plan."""
    return {
        planned.flid
        for message in messages
        if isinstance(message.content, Plan)
        for planned in clashing(flights, message.content)
    }


def _identities(messages: Iterable[Message], policy: IdentityPolicy) -> set[Identity]:
    return {
        identity_of(
            sndr=m.meta.sndr,
            type_=m.meta.type,
            styp=m.meta.styp,
            seqn=m.meta.seqn,
            sent_at=m.meta.sent_at,
            policy=policy,
        )
        for m in messages
        if m.meta.sent_at is not None or not policy.include_day_boundary
    }
