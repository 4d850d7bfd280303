"""What the checker looks at: plain facts read from mailbox, own store and topics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgexchange.flight.events import Target
from msgexchange.flight.messages import Decoded
from msgexchange.ids import MailboxId
from msgexchange.ports import StoreFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFact:
    """One record of a topic; ``event_id`` as in its header, ``<generation>-<EVENT_ID>``."""

    partition: int
    offset: int
    key: str
    event_id: str
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """Both topics as a read_committed consumer sees them, from their log start."""

    generation: int
    msg: Sequence[RecordFact]
    schd: Sequence[RecordFact]
    complete: bool
    """False when old records were removed by the broker: what lies before cannot be judged."""
    starts: Mapping[Target, Mapping[int, int]] = field(default_factory=dict)
    """First offset still held, by partition; 0 where it is not named."""
    born_at: datetime | None = None
    """When the broker began with nothing, None where it keeps what it has."""
    exactly_once: bool = False
    """A record that comes again is a broken promise, not a repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything one verification looks at; ``topics`` None leaves I5, I6, I12 to the store."""

    store: StoreFacts
    marks: Mapping[MailboxId, bool]
    """Every committed mailbox row above ``began_after``: does it carry the processed mark."""
    decoded: Mapping[MailboxId, Decoded]
    """What each SUCCEEDED message says."""
    topics: TopicFacts | None
    drained: bool
    """Nothing waits any more: what must hold in the end must hold now."""
    shadow: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: which invariant, and what breaks it."""

    invariant: str
    text: str
