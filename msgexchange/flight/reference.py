"""Reference data: records by type and key, and what messages do to them (spec 5.2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from msgexchange.flight.state import Json
from msgexchange.ids import MailboxId

Record: TypeAlias = Mapping[str, Json]
"""Values by protocol name, the key field included; never mutated."""

RecordKey: TypeAlias = tuple[str, str]
"""Reference type and key."""


class ReferenceAct(StrEnum):
    """STYPs of a reference type."""

    RESP = "RESP"
    DNLD = "DNLD"
    ADD = "ADD"
    UPD = "UPD"
    DEL = "DEL"


WHOLE = frozenset({ReferenceAct.RESP, ReferenceAct.DNLD})
"""What may carry a whole type."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference message; ``replaces_all``: what it does not carry is gone."""

    type: str
    act: ReferenceAct
    records: Mapping[str, Record]
    replaces_all: bool

    @property
    def keys(self) -> Iterable[RecordKey]:
        return ((self.type, key) for key in self.records)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceChanges:
    """What is to be written, in this order: whole types go, single records go, records come."""

    replaced_types: frozenset[str] = frozenset()
    removed: frozenset[RecordKey] = frozenset()
    written: Mapping[RecordKey, tuple[Record, MailboxId]] = field(default_factory=dict)
    """With the message that last told of each."""

    def __bool__(self) -> bool:
        return bool(self.replaced_types or self.removed or self.written)


class References:
    """Reference messages in the order they came, over the records that are stored.

    A record that is known keeps the fields a message does not carry, as a flight does.
    """

    def __init__(self, stored: Mapping[RecordKey, Record]) -> None:
        self._now: dict[RecordKey, Record] = dict(stored)
        self._replaced: set[str] = set()
        self._removed: set[RecordKey] = set()
        self._written: dict[RecordKey, tuple[Record, MailboxId]] = {}

    def apply(self, told: Reference, cause: MailboxId) -> None:
        if told.replaces_all:
            self._forget(told.type)
        for key, record in told.records.items():
            place = told.type, key
            if told.act is ReferenceAct.DEL:
                self._now.pop(place, None)
                self._written.pop(place, None)
                self._removed.add(place)
            else:
                merged = {**self._now.get(place, {}), **record}
                self._now[place] = merged
                self._written[place] = merged, cause
                self._removed.discard(place)

    def record(self, key: RecordKey) -> Record | None:
        """The record as it is now, None where there is none."""
        return self._now.get(key)

    def changes(self) -> ReferenceChanges:
        return ReferenceChanges(
            replaced_types=frozenset(self._replaced),
            removed=frozenset(self._removed),
            written=dict(self._written),
        )

    def _forget(self, type_: str) -> None:
        self._replaced.add(type_)
        for records in (self._now, self._written):
            for place in [place for place in records if place[0] == type_]:
                del records[place]
        self._removed = {place for place in self._removed if place[0] != type_}
