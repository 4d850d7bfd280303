"""FLOP and FDEL: messages about flights that are already there (spec 2.4, 2.5)."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from msgexchange.flight.decision import Applied, Decision, Outcome, Skipped
from msgexchange.flight.merge import Changes, apply, difference
from msgexchange.flight.messages import Deletion, Operation
from msgexchange.flight.state import FlightState, FlightStatus, unborn
from msgexchange.ids import Flid, MailboxId

Flights = Mapping[Flid, FlightState]


class UnknownFlight(StrEnum):
    """``flights.unknown``: what an operation for a flight we do not know does."""

    SKIP = "skip"
    CREATE = "create"


def decide_operation(
    flights: Flights,
    operation: Operation,
    *,
    cause: MailboxId,
    unknown: UnknownFlight,
    last_versions: Mapping[Flid, int],
) -> Outcome:
    """Every block applied, or the message SKIPPED naming each flight that cannot take it."""
    flids = tuple(block.flid for block in operation.blocks)
    refusal = _refusal(flights, flids, creates=unknown is UnknownFlight.CREATE)
    if refusal is not None:
        return refusal
    decisions = []
    for block in operation.blocks:
        known = flights.get(block.flid)
        before = known or unborn(block.flid, None, last_versions.get(block.flid, 0))
        after = apply(before, block.commands, cause=cause)
        changes = difference(before.content, after.content)
        said = tuple(command.name for command in block.commands)
        decisions.append(Decision(known, after, changes, said))
    return Applied(tuple(decisions))


def decide_deletion(flights: Flights, deletion: Deletion, *, cause: MailboxId) -> Outcome:
    """Every flight DELETED, its content kept until the history sweep; or the message SKIPPED."""
    refusal = _refusal(flights, deletion.flids, creates=False)
    if refusal is not None:
        return refusal
    return Applied(
        tuple(
            Decision(
                before := flights[flid],
                replace(apply(before, (), cause=cause), status=FlightStatus.DELETED),
                Changes({}, {}, ()),
                ("status",),
            )
            for flid in deletion.flids
        )
    )


def _refusal(flights: Flights, flids: tuple[Flid, ...], *, creates: bool) -> Skipped | None:
    missing = [] if creates else [flid for flid in flids if flid not in flights]
    deleted = [
        flid for flid in flids if flid in flights and flights[flid].status is FlightStatus.DELETED
    ]
    reasons = []
    if missing:
        reasons.append(f"no-match:{','.join(missing)}")
    if deleted:
        reasons.append(f"deleted:{','.join(deleted)}")
    return Skipped("; ".join(reasons), alert=bool(deleted)) if reasons else None
