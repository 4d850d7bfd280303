"""I3 and I11: all or nothing per message, and the state is the fold of what succeeded."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgexchange.flight.events import EventType, Target
from msgexchange.flight.messages import Message
from msgexchange.flight.reference import Reference
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import Flid, MailboxId
from msgexchange.invariants.model import Model, flids_of
from msgexchange.invariants.observation import Observation, Violation
from msgexchange.lifecycle.states import TERMINAL, MessageState
from msgexchange.ports import ChangeFact, EventFact, Kept


def all_or_none(seen: Observation) -> Iterator[Violation]:
    """I3: a message that succeeded has provenance and both events per flight; no other has any."""
    for fact in seen.store.messages:
        intended = fact.mark_intended or fact.mark_confirmed
        if fact.state in TERMINAL and not intended and not seen.shadow:
            yield Violation("I3", f"message {fact.message_id} ended without a back-fill intent")
    succeeded = {
        fact.message_id for fact in seen.store.messages if fact.state is MessageState.SUCCEEDED
    }
    foreign = _foreign_messages(seen)
    unchanged_by, silent = _ended_before(seen, Kept.CHANGES), _ended_before(seen, Kept.SENT_EVENTS)
    expected: dict[tuple[MailboxId, str | None, int | None], set[EventType]] = defaultdict(set)
    for event in _events_of_messages(seen):
        expected[event.message_id, event.flid, event.state_version].add(event.type)
        if event.message_id not in succeeded | foreign:
            text = f"event {event.event_id} of message {event.message_id}"
            yield Violation("I3", f"{text}, which did not succeed")
    changed = set()
    for change in _changes_by_messages(seen):
        changed.add(change.message_id)
        if change.message_id not in succeeded:
            text = f"flight {change.flid} version {change.version} by message {change.message_id}"
            yield Violation("I3", f"{text}, which did not succeed")
        if change.message_id in silent:
            continue
        types = expected[change.message_id, change.flid, change.version]
        if EventType.NOTICE not in types or not types & {EventType.UPSERT, EventType.TOMBSTONE}:
            text = f"flight {change.flid} version {change.version} has events {sorted(types)}"
            yield Violation("I3", text)
    for message_id in sorted(succeeded - changed - unchanged_by - _of_references(seen)):
        yield Violation("I3", f"message {message_id} succeeded and changed nothing")


def _of_references(seen: Observation) -> set[MailboxId]:
    """Messages that tell of no flight."""
    return {
        message_id
        for message_id, decoded in seen.decoded.items()
        if isinstance(decoded, Message) and isinstance(decoded.content, Reference)
    }


def _events_of_messages(seen: Observation) -> Iterator[EventFact]:
    """Without requests: a person or a schedule is behind them."""
    return (one for one in seen.store.events if one.target is not Target.MAILBOX_OUT)


def _changes_by_messages(seen: Observation) -> Iterator[ChangeFact]:
    """Without those by which flights were brought in from another system."""
    brought = {(state.flid, state.version) for state in seen.store.imported}
    return (one for one in seen.store.changes if (one.flid, one.version) not in brought)


def _foreign_messages(seen: Observation) -> set[MailboxId]:
    """Messages of another system that events of imported flights name."""
    imported = {state.flid for state in seen.store.imported}
    ours = {fact.message_id for fact in seen.store.messages}
    return {event.message_id for event in seen.store.events if event.flid in imported} - ours


def _ended_before(seen: Observation, kept: Kept) -> set[MailboxId]:
    """Messages so old that retention may have taken what they left of this kind."""
    since = seen.store.kept_since.get(kept)
    return {
        fact.message_id
        for fact in seen.store.messages
        if since is not None and fact.finished_at is not None and fact.finished_at < since
    }


def unreadable_past(seen: Observation) -> set[str]:
    """Flights changed by a message whose text is gone, or no longer says what it said: the owner
    purged the mailbox, or the catalogue has changed since.
    """
    told: dict[MailboxId, set[str]] = defaultdict(set)
    for change in _changes_by_messages(seen):
        told[change.message_id].add(change.flid)
    unread = {
        flid
        for message_id, flids in told.items()
        if flids_of(seen.decoded.get(message_id)) != flids
        for flid in flids
    }
    return unread | _shortened_past(seen)


def _shortened_past(seen: Observation) -> set[str]:
    """Flights whose first changes are no longer kept."""
    if Kept.CHANGES not in seen.store.kept_since:
        return set()
    first: dict[str, int] = {}
    for change in seen.store.changes:
        if change.version > seen.store.ended.get(change.flid, 0):
            first[change.flid] = min(change.version, first.get(change.flid, change.version))
    stored = {state.flid for state in seen.store.flights}
    imported = {state.flid: state.version for state in seen.store.imported}
    begun = {
        flid
        for flid, version in first.items()
        if version in (seen.store.ended.get(Flid(flid), 0) + 1, imported.get(Flid(flid)))
    }
    # Whoever is told of only by messages whose changes are gone is in neither.
    return (stored | first.keys() | _all_told(seen)) - begun


def _all_told(seen: Observation) -> set[str]:
    return {flid for decoded in seen.decoded.values() for flid in flids_of(decoded)}


def _told_of_past_lives(seen: Observation) -> Mapping[MailboxId, set[str]]:
    """By message, the flights whose life it told of has been swept."""
    ended = seen.store.ended
    told: dict[MailboxId, set[str]] = defaultdict(set)
    for change in seen.store.changes:
        if change.version <= ended.get(change.flid, 0):
            told[change.message_id].add(change.flid)
    return told


def state_is_the_fold(seen: Observation) -> Iterator[Violation]:
    """I11: an independent fold of the SUCCEEDED messages in id order gives the stored flights.

    A flight whose past cannot be read any more is left out; see ``unreadable_past``.
    """
    model = Model(seen.store.ended, seen.store.imported)
    left_out = unreadable_past(seen)
    past = _told_of_past_lives(seen)
    applied = [f for f in seen.store.messages if f.state is MessageState.SUCCEEDED]
    # A late row that was let in is applied after rows with larger ids.
    for fact in sorted(applied, key=lambda fact: (fact.finished_at, fact.message_id)):
        decoded = seen.decoded.get(fact.message_id)
        if decoded is not None:
            model.apply(fact.message_id, decoded, past[fact.message_id])
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
        last = ours.last_message_id if told.last_message_id else 0
        stored_view = (ours.content, ours.version, day, deleted, last)
        if stored_view != told.view():
            yield Violation("I11", f"flight {flid}: stored {stored_view}, fold {told.view()}")
