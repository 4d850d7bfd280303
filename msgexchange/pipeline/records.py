"""Outbox events as Kafka records (spec 4.4)."""

from msgexchange.ports import OutboxEntry, Record


def event_key(generation: int, event_id: int) -> str:
    """An event's identity for the outside: ``<generation>-<EVENT_ID>`` (spec 4.1)."""
    return f"{generation}-{event_id}"


def record_of(entry: OutboxEntry, generation: int) -> Record:
    """Key, value and headers of one event; a tombstone has no value."""
    headers = {
        "event-id": event_key(generation, entry.event_id),
        "event-type": entry.type.value,
        "message-id": str(entry.message_id),
        "state-version": None if entry.state_version is None else str(entry.state_version),
        "operation-day": None if entry.operation_day is None else entry.operation_day.isoformat(),
        "content-type": "application/json",
        "traceparent": entry.traceparent,
        "redelivery-of": None
        if entry.redelivery_of is None
        else event_key(generation, entry.redelivery_of),
        "prev-dead": "true" if entry.previous_is_dead else None,
    }
    return Record(
        key=entry.partition_key.encode(),
        value=entry.payload,
        headers=tuple((name, text.encode()) for name, text in headers.items() if text is not None),
    )


def record_bytes(record: Record) -> int:
    """Size on the wire, generously: what the broker's limit is compared with."""
    headers = sum(len(name) + len(value) + 8 for name, value in record.headers)
    return len(record.key) + len(record.value or b"") + headers + 128
