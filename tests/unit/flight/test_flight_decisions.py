"""Plans, operations and deletions decided on flights that are already there."""

from datetime import date, datetime, timedelta

import pytest

from msgexchange.flight.commands import Command, Set
from msgexchange.flight.decision import Applied, Outcome, Refused, Skipped
from msgexchange.flight.dynamic import UnknownFlight, decide_deletion, decide_operation
from msgexchange.flight.events import EventType, Target, events_of
from msgexchange.flight.messages import (
    Block,
    Deletion,
    Meta,
    Operation,
    Plan,
    PlanKind,
    PlannedFlight,
)
from msgexchange.flight.snapshot import CLASHES_NAMED_MAX, decide_plan
from msgexchange.flight.state import FlightState, FlightStatus, Json
from msgexchange.ids import Flid, MailboxId

DAY = date(2026, 9, 3)
NOON = datetime(2026, 9, 3, 12)
CAUSE = MailboxId(17)
META = Meta(sndr="AODB", type="FLOP", styp="STAT", seqn="1", dttm="202609031200", sent_at=NOON)


def flight(
    flid: str,
    *,
    day: date | None = DAY,
    status: FlightStatus = FlightStatus.ACTIVE,
    version: int = 3,
    content: dict[str, Json] | None = None,
) -> FlightState:
    return FlightState(
        flid=Flid(flid),
        operation_day=day,
        status=status,
        version=version,
        last_message_id=MailboxId(2),
        content=content if content is not None else {"STAT": "NEW", "TERM": "T2"},
    )


def known(*flights: FlightState) -> dict[Flid, FlightState]:
    return {each.flid: each for each in flights}


def operate(
    flights: dict[Flid, FlightState],
    *flids: str,
    unknown: UnknownFlight = UnknownFlight.SKIP,
    last_versions: dict[Flid, int] | None = None,
) -> Outcome:
    commands: tuple[Command, ...] = (Set("STAT", "BRD"),)
    operation = Operation(tuple(Block(Flid(flid), commands) for flid in flids))
    return decide_operation(
        flights, operation, cause=CAUSE, unknown=unknown, last_versions=last_versions or {}
    )


def plan(
    flights: dict[Flid, FlightState],
    *flids: str,
    kind: PlanKind = PlanKind.DNLD,
    day: date = DAY,
    sent_at: datetime | None = NOON,
    newest: dict[date, datetime] | None = None,
    last_versions: dict[Flid, int] | None = None,
) -> Outcome:
    planned = tuple(PlannedFlight(Flid(flid), day, (Set("STAT", "PLN"),)) for flid in flids)
    return decide_plan(
        flights,
        Plan(kind, planned),
        cause=CAUSE,
        sent_at=sent_at,
        newest_sent_at=newest or {},
        last_versions=last_versions or {},
    )


def applied(outcome: Outcome) -> list[FlightState]:
    assert isinstance(outcome, Applied), outcome
    return [decision.after for decision in outcome.decisions]


def test_an_operation_keeps_day_and_the_rest() -> None:
    (after,) = applied(operate(known(flight("1")), "1"))
    assert after.content == {"STAT": "BRD", "TERM": "T2"}
    assert (after.version, after.operation_day, after.last_message_id) == (4, DAY, CAUSE)


def test_one_unknown_or_deleted_flight_skips_all_and_all_are_named() -> None:
    flights = known(flight("1"), flight("2", status=FlightStatus.DELETED))
    assert operate(flights, "1", "7", "8") == Skipped("no-match:7,8")
    assert operate(flights, "1", "2") == Skipped("deleted:2", alert=True)
    assert operate(flights, "7", "2") == Skipped("no-match:7; deleted:2", alert=True)


def test_an_unknown_flight_may_be_created_without_a_day() -> None:
    (after,) = applied(operate({}, "7", unknown=UnknownFlight.CREATE, last_versions={Flid("7"): 9}))
    assert (after.operation_day, after.version, after.content) == (None, 10, {"STAT": "BRD"})


def test_a_deleted_flight_is_not_created_again_by_an_operation() -> None:
    flights = known(flight("2", status=FlightStatus.DELETED))
    assert operate(flights, "2", unknown=UnknownFlight.CREATE) == Skipped("deleted:2", alert=True)


def test_a_deletion_keeps_the_content_and_tells_a_tombstone() -> None:
    outcome = decide_deletion(known(flight("1")), Deletion((Flid("1"),)), cause=CAUSE)
    (after,) = applied(outcome)
    assert after.status is FlightStatus.DELETED
    assert after.content == {"STAT": "NEW", "TERM": "T2"}
    assert isinstance(outcome, Applied)
    notice, tombstone = events_of(outcome.decisions[0], META, timezone="Asia/Shanghai")
    assert (notice.target, notice.type) == (Target.MSG, EventType.NOTICE)
    assert notice.value is not None
    assert notice.value["kind"] == "FDEL"
    assert (tombstone.type, tombstone.value) == (EventType.TOMBSTONE, None)


def test_deleting_what_is_gone_is_skipped() -> None:
    flights = known(flight("2", status=FlightStatus.DELETED))
    deletion = Deletion((Flid("2"), Flid("7")))
    assert decide_deletion(flights, deletion, cause=CAUSE) == Skipped(
        "no-match:7; deleted:2", alert=True
    )


def test_a_plan_merges_known_flights_and_inserts_new_ones() -> None:
    merged, inserted = applied(plan(known(flight("1")), "1", "2", last_versions={Flid("2"): 5}))
    assert (merged.content, merged.version) == ({"STAT": "PLN", "TERM": "T2"}, 4)
    assert (inserted.content, inserted.version) == ({"STAT": "PLN"}, 6)


def test_a_deleted_flight_of_the_same_day_comes_back_empty() -> None:
    gone = flight("1", status=FlightStatus.DELETED)
    outcome = plan(known(gone), "1")
    (after,) = applied(outcome)
    assert after.status is FlightStatus.ACTIVE
    assert (after.content, after.version) == ({"STAT": "PLN"}, 4)
    assert isinstance(outcome, Applied)
    assert outcome.decisions[0].changes.set == {"STAT": "PLN"}


@pytest.mark.parametrize("status", list(FlightStatus))
def test_another_day_refuses_the_whole_plan(status: FlightStatus) -> None:
    flights = known(flight("1"), flight("2", day=DAY - timedelta(days=1), status=status))
    outcome = plan(flights, "1", "2")
    assert isinstance(outcome, Refused)
    assert "2 (here 2026-09-02, plan 2026-09-03)" in outcome.reason


def test_a_refusal_names_twenty_flights_and_counts_the_rest() -> None:
    flights = known(*(flight(f"{n:02}", day=date(2026, 1, 1)) for n in range(25)))
    outcome = plan(flights, *flights)
    assert isinstance(outcome, Refused)
    assert outcome.reason.count("(here") == CLASHES_NAMED_MAX
    assert outcome.reason.endswith("and 5 more")


def test_a_flight_without_a_day_gets_the_plans() -> None:
    (after,) = applied(plan(known(flight("1", day=None)), "1"))
    assert after.operation_day == DAY


@pytest.mark.parametrize(
    ("newest", "sent_at", "stale"),
    [
        (NOON + timedelta(seconds=1), NOON, True),
        (NOON, NOON, False),
        (NOON - timedelta(hours=1), NOON, False),
        (NOON + timedelta(hours=1), None, False),
    ],
)
def test_an_older_plan_is_stale(newest: datetime, sent_at: datetime | None, stale: bool) -> None:
    outcome = plan({}, "1", sent_at=sent_at, newest={DAY: newest})
    assert isinstance(outcome, Skipped) is stale
    if isinstance(outcome, Skipped):
        assert outcome.reason.startswith("stale-plan")
        assert outcome.alert


def test_an_ad_hoc_flight_is_never_stale() -> None:
    newest = {DAY: NOON + timedelta(hours=1)}
    applied(plan({}, "1", kind=PlanKind.ADFT, newest=newest))


def test_a_message_that_changes_nothing_still_gets_its_version_and_both_events() -> None:
    outcome = operate(known(flight("1", content={"STAT": "BRD"})), "1")
    assert isinstance(outcome, Applied)
    (decision,) = outcome.decisions
    assert not decision.changes
    assert decision.after.version == 4
    types = [event.type for event in events_of(decision, META, timezone="UTC")]
    assert types == [EventType.NOTICE, EventType.UPSERT]
