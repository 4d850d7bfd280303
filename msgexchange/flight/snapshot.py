"""Plans and ad hoc flights: whole message or nothing (spec 2.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from msgexchange.flight.decision import Applied, Decision, Outcome, Refused, Skipped
from msgexchange.flight.dynamic import Flights
from msgexchange.flight.merge import apply, difference
from msgexchange.flight.messages import Plan, PlanKind, PlannedFlight
from msgexchange.flight.state import FlightState, FlightStatus, unborn
from msgexchange.ids import Flid, MailboxId

CLASHES_NAMED_MAX = 20
"""A refusal names up to this many offending flights (spec 2.6)."""


def decide_plan(
    flights: Flights,
    plan: Plan,
    *,
    cause: MailboxId,
    sent_at: datetime | None,
    newest_sent_at: Mapping[date, datetime],
    last_versions: Mapping[Flid, int],
) -> Outcome:
    """Every flight merged, inserted or brought back; or the whole message refused or skipped.

    ``newest_sent_at`` is the DTTM of the newest plan applied to each operation day;
    ``last_versions`` the version at which a swept flight's earlier life ended.
    """
    stale = _stale_days(plan, sent_at, newest_sent_at)
    if stale:
        return Skipped(f"stale-plan: {', '.join(map(str, stale))} has a newer one", alert=True)
    clashes = clashing(flights, plan)
    if clashes:
        return Refused(_clash_text(flights, clashes))
    return Applied(
        tuple(_decide_flight(flights, planned, cause, last_versions) for planned in plan.flights)
    )


def _stale_days(
    plan: Plan, sent_at: datetime | None, newest_sent_at: Mapping[date, datetime]
) -> tuple[date, ...]:
    if plan.kind is PlanKind.ADFT or sent_at is None:
        return ()
    return tuple(
        day
        for day in plan.operation_days
        if day in newest_sent_at and sent_at < newest_sent_at[day]
    )


def clashing(flights: Flights, plan: Plan) -> Sequence[PlannedFlight]:
    """The plan's flights that are known under another operation day."""
    return [planned for planned in plan.flights if _clashes(flights, planned)]


def _clashes(flights: Flights, planned: PlannedFlight) -> bool:
    known = flights.get(planned.flid)
    return known is not None and known.operation_day not in (None, planned.operation_day)


def _clash_text(flights: Flights, clashes: Sequence[PlannedFlight]) -> str:
    named = ", ".join(
        f"{clash.flid} (here {flights[clash.flid].operation_day}, plan {clash.operation_day})"
        for clash in clashes[:CLASHES_NAMED_MAX]
    )
    more = len(clashes) - CLASHES_NAMED_MAX
    return f"flights known under another operation day: {named}" + (
        f" and {more} more" if more > 0 else ""
    )


def _decide_flight(
    flights: Flights, planned: PlannedFlight, cause: MailboxId, last_versions: Mapping[Flid, int]
) -> Decision:
    known = flights.get(planned.flid)
    before = _base(known, planned, last_versions)
    after = apply(before, planned.commands, cause=cause)
    said = ("status", "operationDay", *(command.name for command in planned.commands))
    return Decision(known, after, difference(before.content, after.content), said)


def _base(
    known: FlightState | None, planned: PlannedFlight, last_versions: Mapping[Flid, int]
) -> FlightState:
    if known is None:
        return unborn(planned.flid, planned.operation_day, last_versions.get(planned.flid, 0))
    if known.status is FlightStatus.DELETED:
        return unborn(planned.flid, planned.operation_day, known.version)
    return replace(known, operation_day=planned.operation_day)
