"""What a decoded message says, before anyone asked what state the flights are in (spec 1.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import TypeAlias

from msgexchange.flight.commands import Command
from msgexchange.flight.reference import Reference
from msgexchange.flight.state import Json
from msgexchange.ids import Flid


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """The META block; ``sent_at`` is DTTM as naive airport-local time, None if unreadable."""

    sndr: str
    type: str
    styp: str
    seqn: str
    dttm: str
    sent_at: datetime | None
    unknown: Mapping[str, Json] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """``TYPE/STYP``, or TYPE alone where STYP is empty; the ``kind`` of msg events."""
        return f"{self.type}/{self.styp}" if self.styp else self.type


class PlanKind(StrEnum):
    """SCHD subtypes: a plan sent unasked, a plan that answers a request, one ad hoc flight."""

    DNLD = "DNLD"
    RESP = "RESP"
    ADFT = "ADFT"


@dataclass(frozen=True, slots=True)
class PlannedFlight:
    """One FLGT of a plan; its operation day is known (spec 1.2)."""

    flid: Flid
    operation_day: date
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """SCHD: whole message or nothing (spec 2.6)."""

    kind: PlanKind
    flights: tuple[PlannedFlight, ...]

    @property
    def operation_days(self) -> tuple[date, ...]:
        return tuple(sorted({flight.operation_day for flight in self.flights}))


@dataclass(frozen=True, slots=True)
class Block:
    """One FLOP block: what one flight is told."""

    flid: Flid
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """FLOP: one kind, normally one flight, all or nothing (spec 2.4)."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Deletion:
    """FDEL, in either of its two forms (spec 2.5)."""

    flids: tuple[Flid, ...]


Body: TypeAlias = Plan | Operation | Deletion


@dataclass(frozen=True, slots=True)
class Ignored:
    """A type on the ignore list: LDM, REGN, RSTA, EROR."""

    type: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A type or subtype the catalogue does not know: FAILED(UNSUPPORTED)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Inexpressible:
    """Understood, but this codec cannot express it: FAILED(CODEC_ERROR)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """Breaks the contract as a whole: DEAD(PROTOCOL), nothing applied."""

    reason: str


Content: TypeAlias = Body | Reference | Ignored | Unsupported | Inexpressible | Rejected


@dataclass(frozen=True, slots=True)
class Message:
    """A message whose META could be read.

    ``unknown`` are the names kept as extras or reported and not applied (spec 1.1), in order of
    first sight; ``unreadable_times`` the time fields that are kept raw.
    """

    meta: Meta
    content: Content
    unknown: tuple[str, ...] = ()
    unreadable_times: tuple[str, ...] = ()
    echo: str | None = None
    """SEQN of the request that an answer or an error says it is about."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Not XML, forbidden XML, no META or bad META: DEAD(MALFORMED) at the first try."""

    reason: str


Decoded: TypeAlias = Message | Malformed
