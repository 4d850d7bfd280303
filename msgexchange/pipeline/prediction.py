"""What a replay would do to each message, in a form that two moments are compared by (spec 5.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from msgexchange.codec.encode import encode
from msgexchange.flight.events import EventType, Target
from msgexchange.flight.state import Json
from msgexchange.ids import Flid, MailboxId

DETAILS_MAX = 20
"""A message with more changes and events (a plan) is compared by a digest of them alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newer:
    """A message with a larger id that spoke of a field, or of a flight, before."""

    message_id: MailboxId
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field of a flight (``about`` is its FLID) or reference record (its type and key).

    ``backwards``: a newer message said it last.
    """

    about: str
    field: str
    old: Json | None
    new: Json | None
    backwards: Newer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One message. ``refused`` says why it is not replayed at all; it then stays as it is."""

    message_id: MailboxId
    was: str
    """State and class, or reason, as it stands."""
    outcome: str
    refused: str | None = None
    changes: Sequence[FieldChange] = ()
    events: Sequence[tuple[Target, EventType, Flid | None]] = ()
    newer: Mapping[str, Sequence[Newer]] = field(default_factory=dict)
    """By flight it speaks of: newer messages that were applied to it already."""

    @property
    def backwards(self) -> Sequence[FieldChange]:
        return [change for change in self.changes if change.backwards is not None]

    def essence(self) -> dict[str, Any]:
        """What must be the same when it is carried out; versions and times may differ."""
        return {
            "outcome": self.outcome,
            "changes": [
                [one.about, one.field, one.old, one.new, one.backwards is not None]
                for one in self.changes
            ],
            "events": [[target.value, type_.value, flid] for target, type_, flid in self.events],
        }

    def promise(self) -> dict[str, Any]:
        """The essence as a token carries it."""
        essence = self.essence()
        few = len(self.changes) + len(self.events) <= DETAILS_MAX
        return {
            "id": self.message_id,
            "outcome": self.outcome,
            "backwards": bool(self.backwards),
            "digest": digest_of(essence),
            "essence": essence if few else None,
        }


def digest_of(essence: Mapping[str, Any]) -> str:
    return blake2b(encode(essence), digest_size=12).hexdigest()


def difference_of(promised: Mapping[str, Any], now: Prediction) -> str | None:
    """What is not as it was promised, in words; None if all is."""
    if now.refused is not None:
        return f"message {now.message_id} is {now.refused}"
    essence = now.essence()
    if promised["digest"] == digest_of(essence):
        return None
    if promised["outcome"] != now.outcome:
        return f"message {now.message_id}: {promised['outcome']} predicted, now {now.outcome}"
    before = promised["essence"]
    if before is None:
        return f"message {now.message_id}: what it would change is not as predicted"
    return f"message {now.message_id}: {_detail(before, essence, now)}"


def _detail(before: Mapping[str, Any], after: Mapping[str, Any], now: Prediction) -> str:
    # Compared as they are written: a token brings lists, a fold tuples.
    was = {(about, name): (old, new, back) for about, name, old, new, back in before["changes"]}
    newer = {(one.about, one.field): one.backwards for one in now.changes}
    told = []
    for about, name, old, new, back in after["changes"]:
        promised = was.pop((about, name), None)
        by = newer.get((about, name))
        said = f", last said by newer message {by.message_id}" if by is not None else ""
        if promised is None:
            told.append(f"{about} {name} would change from {_shown(old)} to {_shown(new)}{said}")
        elif encode([old, new, back]) != encode(promised):
            told.append(
                f"{about} {name} was {_shown(promised[0])} -> {_shown(promised[1])}, "
                f"is now {_shown(old)} -> {_shown(new)}{said}"
            )
    told += [f"{about} {name} would not change any more" for about, name in was]
    if not told:
        told.append("other events would go out than predicted")
    return "; ".join(told)


def _shown(value: Any) -> str:
    return "absent" if value is None else encode(value).decode()
