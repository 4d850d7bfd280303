"""``store import``: flights exported from another system, all of them or none (spec 5.9)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgexchange.codec.blocks import is_flid
from msgexchange.codec.encode import encode
from msgexchange.codec.limits import Limits
from msgexchange.codec.state_form import read_state
from msgexchange.flight.decision import Decision
from msgexchange.flight.events import EventType, Target, schd_value
from msgexchange.flight.merge import difference
from msgexchange.flight.state import FlightState, FlightStatus, Json
from msgexchange.ids import Flid, MailboxId
from msgexchange.pipeline.provenance import provenance
from msgexchange.ports import ChangeRow, Imported, ImportStore, ImportTransaction, NewEvent

FLIGHTS_AT_ONCE = 1_000
PROBLEMS_TOLD_MAX = 20
NO_MESSAGE = MailboxId(0)
"""MSG_ID of provenance and events that no mailbox row caused."""


class ImportRefused(Exception):
    """Nothing was imported; ``problems`` say which line or flight, what, and what to do."""

    def __init__(self, problems: Sequence[str]) -> None:
        more = len(problems) - PROBLEMS_TOLD_MAX
        told = [*problems[:PROBLEMS_TOLD_MAX], *([f"and {more} more"] if more > 0 else [])]
        super().__init__("\n".join(told))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrder:
    """``publishes``: each flight also goes out on the schd topic."""

    by: str
    reason: str | None
    publishes: bool
    timezone: str
    at: datetime


def read_states(lines: Iterable[bytes], limits: Limits) -> Sequence[FlightState]:
    """The states of an NDJSON file in schd form, blank lines left out.

    Raises ``ImportRefused`` with every bad line by its number.
    """
    states: dict[Flid, tuple[int, FlightState]] = {}
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            state = read_state(line)
        except ValueError as error:
            problems.append(f"line {number}: {error}")
            continue
        problems += [f"line {number}: {problem}" for problem in _objections(state, limits)]
        if state.flid in states:
            first = states[state.flid][0]
            problems.append(f"line {number}: flight {state.flid} stands in line {first} already")
        states.setdefault(state.flid, (number, state))
    if problems:
        raise ImportRefused(problems)
    return [state for _, state in states.values()]


def import_states(
    store: ImportStore,
    states: Sequence[FlightState],
    order: ImportOrder,
    told: Callable[[int], None],
) -> None:
    """Load them in one transaction, read every flight again and compare every field.

    ``told`` hears how many flights were taken care of since it heard last. ``ImportRefused`` where
    a flight is known already, or comes back otherwise than it was written.
    """
    with store.transaction() as transaction:
        for slice_ in _sliced(states):
            _refuse_known(transaction.known([state.flid for state in slice_]))
            _load(transaction, slice_, order)
            _compare(transaction, slice_)
            told(len(slice_))
        published = "published on schd" if order.publishes else "not published"
        outcome = f"{len(states)} flights, {published}"
        transaction.record(Imported(by=order.by, reason=order.reason, outcome=outcome, at=order.at))


def _load(
    transaction: ImportTransaction, states: Sequence[FlightState], order: ImportOrder
) -> None:
    transaction.load(
        states,
        [_provenance(state) for state in states],
        [_event(state, order.timezone) for state in states] if order.publishes else [],
        now=order.at,
    )


def _provenance(state: FlightState) -> ChangeRow:
    decision = Decision(None, state, difference({}, state.content))
    return ChangeRow(
        flid=state.flid,
        version=state.version,
        message_id=NO_MESSAGE,
        changes=encode(provenance(decision)),
    )


def _event(state: FlightState, timezone: str) -> NewEvent:
    gone = state.status is FlightStatus.DELETED
    return NewEvent(
        target=Target.SCHD,
        type=EventType.TOMBSTONE if gone else EventType.UPSERT,
        partition_key=state.flid,
        flid=state.flid,
        message_id=NO_MESSAGE,
        state_version=state.version,
        operation_day=state.operation_day,
        payload=None if gone else encode(schd_value(state, timezone)),
    )


def _refuse_known(known: Iterable[Flid]) -> None:
    problems = [
        f"flight {flid} is known here already: leave it out of the file, or begin with a new store"
        for flid in sorted(known)
    ]
    if problems:
        raise ImportRefused(problems)


def _compare(transaction: ImportTransaction, states: Sequence[FlightState]) -> None:
    stored = transaction.flights([state.flid for state in states])
    problems = [
        f"flight {state.flid} came back otherwise than it was written: {difference_}"
        for state in states
        if (difference_ := _difference(state, stored.get(state.flid))) is not None
    ]
    if problems:
        raise ImportRefused(problems)


def _difference(written: FlightState, read: FlightState | None) -> str | None:
    if read is None:
        return "it is not there"
    if read == written:
        return None
    fields = difference(written.content, read.content)
    names = [*fields.set, *fields.replaced, *fields.cleared]
    return ", ".join(names) or "its version, day or status"


def _objections(state: FlightState, limits: Limits) -> Iterator[str]:
    if not is_flid(state.flid):
        yield f"the flid {state.flid!r} is none: 1 to 32 letters, digits, - or _"
    if state.version < 1:
        yield "stateVersion is 0: a flight's first version is 1"
    if not _is_storable(state.content, limits):
        yield (
            "a name or value holds NUL or half a character, or is longer than "
            f"{limits.value_characters_max} characters"
        )


def _is_storable(value: Json, limits: Limits) -> bool:
    match value:
        case str():
            return (
                len(value) <= limits.value_characters_max
                and "\0" not in value
                and not any("\ud800" <= c <= "\udfff" for c in value)
            )
        case tuple():
            return all(_is_storable(item, limits) for item in value)
        case _:
            return all(
                _is_storable(name, limits) and _is_storable(item, limits)
                for name, item in value.items()
            )


def _sliced(states: Sequence[FlightState]) -> Iterator[Sequence[FlightState]]:
    for start in range(0, len(states), FLIGHTS_AT_ONCE):
        yield states[start : start + FLIGHTS_AT_ONCE]
