"""I5, I6, I12: what the topics show against the outbox and the flights."""

from collections.abc import Iterator, Sequence

import orjson

from msgexchange.codec.encode import encode
from msgexchange.flight.events import EventType, Target
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.invariants.observation import Observation, RecordFact, TopicFacts, Violation
from msgexchange.lifecycle.states import EventState
from msgexchange.ports import EventFact


def records_in_event_order(seen: Observation) -> Iterator[Violation]:
    """I5: per topic and key, event ids grow; a record that comes again carries the same id.

    With exactly-once none comes again; repeats from before it was set are found too.
    """
    if seen.topics is None:
        return
    for topic, records in (("msg", seen.topics.msg), ("schd", seen.topics.schd)):
        newest: dict[str, int] = {}
        met: set[int] = set()
        for record in _in_log_order(records):
            event_id = _event_id(record, seen.topics)
            if event_id is None:
                continue
            if event_id < newest.get(record.key, 0) and event_id not in met:
                text = f"{topic}/{record.key}: event {event_id} after {newest[record.key]}"
                yield Violation("I5", text)
            if event_id in met and seen.topics.exactly_once:
                yield Violation("I5", f"{topic}/{record.key}: event {event_id} comes again")
            met.add(event_id)
            newest[record.key] = max(newest.get(record.key, 0), event_id)


def sent_is_on_the_broker(seen: Observation) -> Iterator[Violation]:
    """I6: every SENT event has its record; in the end every other one is explained."""
    if seen.topics is not None:
        yield from _sent_without_record(seen, seen.topics)
    if not seen.drained:
        return
    for event in seen.store.events:
        unexplained = event.state is EventState.PENDING and event.error is None
        if unexplained:
            yield Violation("I6", f"event {event.event_id} still waits, and nothing says why")
        if event.state is EventState.SUPERSEDED and event.superseded_by is None:
            yield Violation("I6", f"event {event.event_id} is SUPERSEDED by nobody")


def _sent_without_record(seen: Observation, topics: TopicFacts) -> Iterator[Violation]:
    """Above each partition's log start; on schd, which is compacted, the newest of each flight.

    Compaction removes tombstones in time: a missing one is no break.
    """
    newest = {
        event.flid: event.event_id
        for event in seen.store.events
        if event.target is Target.SCHD and event.state is EventState.SENT
    }
    for target, records in ((Target.MSG, topics.msg), (Target.SCHD, topics.schd)):
        by_place = {(record.partition, record.offset): _number(record) for record in records}
        numbers = set(by_place.values())
        for event in seen.store.events:
            if event.target is not target or event.state is not EventState.SENT:
                continue
            if target is Target.SCHD and (
                newest[event.flid] != event.event_id or event.type is EventType.TOMBSTONE
            ):
                continue
            if event.place is None:
                there = event.event_id in numbers or not topics.complete
            else:
                there = by_place.get(event.place) == event.event_id or _expired(event, topics)
            if not there:
                yield Violation("I6", f"event {event.event_id} is SENT and on no topic")


def _expired(event: EventFact, topics: TopicFacts) -> bool:
    """The broker need not have it any more."""
    if topics.born_at is not None and event.sent_at is not None and event.sent_at < topics.born_at:
        return True
    assert event.place is not None
    partition, offset = event.place
    return offset < topics.starts.get(event.target, {}).get(partition, 0)


def schd_shows_the_current_state(seen: Observation) -> Iterator[Violation]:
    """I12: the last value of a key is its flight's current state, or a tombstone.

    A flight whose newest schd event is a dead letter is explained by it (I6), an imported one is
    on no topic before its first event.
    """
    if seen.topics is None or not seen.drained or not seen.topics.complete:
        return
    newest = {event.flid: event for event in seen.store.events if event.target is Target.SCHD}
    imported = {state.flid for state in seen.store.imported}
    explained = {flid for flid, event in newest.items() if event.state is EventState.DEAD}
    last = {record.key: record for record in _in_log_order(seen.topics.schd)}
    for flight in seen.store.flights:
        record = last.pop(flight.flid, None)
        if flight.flid in explained or (flight.flid in imported and flight.flid not in newest):
            continue
        difference = _difference(flight, record)
        if difference is not None:
            yield Violation("I12", f"flight {flight.flid} {difference}")
    for key, record in last.items():
        if record.value is not None:
            yield Violation("I12", f"flight {key} is gone, its last value is not a tombstone")


def _difference(flight: FlightState, record: RecordFact | None) -> str | None:
    if flight.status is FlightStatus.DELETED:
        # Compaction removes tombstones in time: then nothing is left of a deleted flight.
        is_gone = record is None or record.value is None
        return None if is_gone else "is deleted, its last value is no tombstone"
    if record is None:
        return "is on no schd record"
    if record.value is None:
        return "is active, its last value is a tombstone"
    same = _state_of(record.value) == encode(flight.content)
    return None if same else "has another state than its last value"


def _state_of(value: bytes) -> bytes:
    return encode(orjson.loads(value)["state"])


def _in_log_order(records: Sequence[RecordFact]) -> list[RecordFact]:
    return sorted(records, key=lambda record: (record.partition, record.offset))


def _event_id(record: RecordFact, topics: TopicFacts) -> int | None:
    generation, _, event_id = record.event_id.partition("-")
    return int(event_id) if generation == str(topics.generation) else None


def _number(record: RecordFact) -> int:
    """EVENT_ID, of whatever generation."""
    return int(record.event_id.partition("-")[2] or 0)
