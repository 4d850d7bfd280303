"""I3 and I11: all or nothing per message, and the state is the fold of what succeeded."""

from collections import defaultdict
from collections.abc import Iterator

from msgexchange.flight.events import EventType
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import MailboxId
from msgexchange.invariants.model import Model, flids_of
from msgexchange.invariants.observation import Observation, Violation
from msgexchange.lifecycle.states import TERMINAL, MessageState


def all_or_none(seen: Observation) -> Iterator[Violation]:
    """I3: a message that succeeded has provenance and both events per flight; no other has any."""
    for fact in seen.store.messages:
        intended = fact.mark_intended or fact.mark_confirmed
        if fact.state in TERMINAL and not intended and not seen.shadow:
            yield Violation("I3", f"message {fact.message_id} ended without a back-fill intent")
    succeeded = {
        fact.message_id for fact in seen.store.messages if fact.state is MessageState.SUCCEEDED
    }
    expected: dict[tuple[MailboxId, str | None, int | None], set[EventType]] = defaultdict(set)
    for event in seen.store.events:
        expected[event.message_id, event.flid, event.state_version].add(event.type)
        if event.message_id not in succeeded:
            text = f"event {event.event_id} of message {event.message_id}"
            yield Violation("I3", f"{text}, which did not succeed")
    changed = set()
    for change in seen.store.changes:
        changed.add(change.message_id)
        if change.message_id not in succeeded:
            text = f"flight {change.flid} version {change.version} by message {change.message_id}"
            yield Violation("I3", f"{text}, which did not succeed")
        types = expected[change.message_id, change.flid, change.version]
        if EventType.NOTICE not in types or not types & {EventType.UPSERT, EventType.TOMBSTONE}:
            text = f"flight {change.flid} version {change.version} has events {sorted(types)}"
            yield Violation("I3", text)
    for message_id in sorted(succeeded - changed):
        yield Violation("I3", f"message {message_id} succeeded and changed nothing")


def unreadable_past(seen: Observation) -> set[str]:
    """Flights changed by a message whose text is gone, or no longer says what it said: the owner
    purged the mailbox, or the catalogue has changed since.
    """
    told: dict[MailboxId, set[str]] = defaultdict(set)
    for change in seen.store.changes:
        told[change.message_id].add(change.flid)
    return {
        flid
        for message_id, flids in told.items()
        if flids_of(seen.decoded.get(message_id)) != flids
        for flid in flids
    }


def state_is_the_fold(seen: Observation) -> Iterator[Violation]:
    """I11: an independent fold of the SUCCEEDED messages in id order gives the stored flights.

    A flight whose past cannot be read any more is left out; see ``unreadable_past``.
    """
    model = Model()
    left_out = unreadable_past(seen)
    applied = [f for f in seen.store.messages if f.state is MessageState.SUCCEEDED]
    # A late row that was let in is applied after rows with larger ids.
    for fact in sorted(applied, key=lambda fact: (fact.finished_at, fact.message_id)):
        decoded = seen.decoded.get(fact.message_id)
        if decoded is not None:
            model.apply(fact.message_id, decoded)
    stored: dict[str, FlightState] = {state.flid: state for state in seen.store.flights}
    for flid in sorted((stored.keys() | model.flights.keys()) - left_out):
        ours = stored.get(flid)
        told = model.flights.get(flid)
        if ours is None or told is None:
            where = "not stored" if ours is None else "not in the fold"
            yield Violation("I11", f"flight {flid} is {where}")
            continue
        day = ours.operation_day.isoformat() if ours.operation_day else None
        deleted = ours.status is FlightStatus.DELETED
        stored_view = (ours.content, ours.version, day, deleted, ours.last_message_id)
        if stored_view != told.view():
            yield Violation("I11", f"flight {flid}: stored {stored_view}, fold {told.view()}")
