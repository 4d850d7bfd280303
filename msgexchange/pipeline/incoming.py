"""A message as the pump holds it between the mailbox and the fold."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from msgexchange.flight.messages import Decoded, Deletion, Message, Operation, Plan
from msgexchange.flight.reference import Reference
from msgexchange.ids import Flid, Identity, MailboxId
from msgexchange.lifecycle.states import InboxEntry
from msgexchange.ports import Text, TextMissing

Decode: TypeAlias = Callable[[str], Decoded]


@dataclass(frozen=True, slots=True)
class Broken:
    """Decoding failed in a way no rule foresees: FAILED(INFRA), charged."""

    reason: str


@dataclass(frozen=True, slots=True)
class Crashed:
    """A process ended while it worked on the message, for the ``crashes``-th time: charged."""

    reason: str
    crashes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One claimed message: its inbox entry, its raw text, and what decoding made of it."""

    entry: InboxEntry
    text: str | None
    judged: Decoded | Broken | Crashed | TextMissing
    identity: Identity | None = None
    taken_over_from: MailboxId | None = None
    note: str | None = None
    decoded: tuple[datetime, datetime] | None = None
    """When decoding began and ended."""

    @property
    def message(self) -> Message | None:
        return self.judged if isinstance(self.judged, Message) else None

    @property
    def flids(self) -> tuple[Flid, ...]:
        """Flights the message is about."""
        return flids_of(self.judged) if isinstance(self.judged, Message) else ()

    @property
    def size(self) -> int:
        """Flights or reference records it may write."""
        match self.judged:
            case Message(content=Reference(records=records)):
                return len(records)
            case _:
                return len(self.flids)

    @property
    def digest(self) -> str | None:
        """Of the raw text, 32 hex digits; None where there is none."""
        if self.text is None:
            return None
        return hashlib.blake2b(self.text.encode(errors="replace"), digest_size=16).hexdigest()


def flids_of(message: Message) -> tuple[Flid, ...]:
    """Flights the message is about."""
    match message.content:
        case Plan(flights=flights):
            return tuple(flight.flid for flight in flights)
        case Operation(blocks=blocks):
            return tuple(block.flid for block in blocks)
        case Deletion(flids=flids):
            return flids
        case _:
            return ()


def judge(
    entry: InboxEntry, text: Text | Broken, decode: Decode, *, now: Callable[[], datetime]
) -> Incoming:
    """Decode one raw text; whatever decoding raises is held against the message alone."""
    if isinstance(text, TextMissing | Broken):
        return Incoming(entry=entry, text=None, judged=text)
    began_at = now()
    try:
        judged: Decoded | Broken = decode(text)
    except MemoryError:
        raise
    except Exception as failure:  # noqa: BLE001 - charged to the message that causes it (spec 3.3)
        judged = Broken(f"decoding failed: {type(failure).__name__}: {failure}")
    return Incoming(entry=entry, text=text, judged=judged, decoded=(began_at, now()))


def within(incoming: Iterable[Incoming], flights_max: int) -> list[Incoming]:
    """The first messages that together touch at most ``flights_max`` flights or records of
    reference data; at least one.
    """
    taken: list[Incoming] = []
    flights = 0
    for one in incoming:
        flights += one.size
        if taken and flights > flights_max:
            break
        taken.append(one)
    return taken
