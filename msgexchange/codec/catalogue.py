"""The site's message dialect as data: kinds, names, fields, clear rules, columns (spec 1.3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class GroupShape(StrEnum):
    """How a name behaves in a flight's state."""

    SCALAR = "scalar"
    COLLECTION = "collection"
    EXCEPTION = "exception"
    TEXT = "text"


class ClearRule(StrEnum):
    """What makes a present element empty its group (spec 2.2)."""

    SEQUENCE_ZERO = "sequence-zero"
    """Every item has sequence 0: Clear; 0 beside other numbers: PROTOCOL."""
    EMPTY_ELEMENT_IS_EMPTY_LIST = "empty-element-is-empty-list"
    """One empty element: Replace with the empty list (DELY)."""
    EMPTY_ELEMENT_CLEARS = "empty-element-clears"
    """One empty, blank or nil element: Clear (exceptions, text groups)."""
    NEVER = "never"
    """Scalars: empty is a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One name of a flight's state: a scalar, a collection, an exception or a text group.

    ``table`` is the detail table of a collection (one of the nine FLIGHT_* details; None keeps
    the collection in FLIGHT_SCHD.EXTRA), ``route_kind`` tells ROUT from ERUT in
    FLIGHT_ROUTE_POINT. ``columns`` maps field names to columns of that table (or, for an
    exception, of FLIGHT_SCHD); a field mapped to None is kept in EXTRA. A scalar or text group
    has the one field "" mapped to its FLIGHT_SCHD column.
    """

    name: str
    shape: GroupShape
    clear_rule: ClearRule
    table: str | None = None
    route_kind: str | None = None
    sequence: str | None = None
    columns: Mapping[str, str | None]
    time_fields: frozenset[str] = frozenset()
    """Fields that hold times; "" for a scalar that is one."""
    confirmed: bool = False
    """False: the name is assumed until the site confirms it."""
    unconfirmed_fields: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceType:
    """One reference message type: its record element and key field (spec 5.2).

    ``label`` is the field that holds a record's name for people; ``codes`` are the places of a
    flight's state that hold its keys: ``GROUP``, or ``GROUP/FIELD``.
    """

    name: str
    record: str
    key: str
    replaces_all: bool
    label: str = "NAME"
    codes: tuple[str, ...] = ()
    confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Names of the elements around the content."""

    plan: str = "SCHD"
    count: str = "RCNT"
    planned_flight: str = "FLGT"
    operation: str = "FLOP"
    deletion: str = "FDEL"
    flid: str = "FLID"
    operation_day: str = "FDAY"
    scheduled_time: str = "SCTM"
    identifying: frozenset[str] = frozenset({"FLNO", "FFID"})
    """Elements of a FLOP block that name the flight and are not applied."""
    text_field: str = "TEXT"
    plan_request: str = "RQFD"
    first_day: str = "BGDY"
    last_day: str = "EDDY"
    reference_request: str = "RQRD"
    reference_type: str = "RFTP"
    answer_echo: str | None = None
    """In which an answer carries the SEQN of its request; None: answers carry none."""
    error_echo: str | None = None
    """The same of an error message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """One dialect, validated whole.

    ``kinds`` are the enabled STYPs of FLOP: STYP -> the name of the group it changes;
    ``disabled_kinds`` the ones the file names and switches off.
    ``fingerprint`` is a digest of the data: with the software version it says which codec
    judged a message.
    """

    envelope: Envelope
    groups: Mapping[str, Group]
    kinds: Mapping[str, str]
    ignored: frozenset[str]
    references: Mapping[str, ReferenceType]
    fingerprint: str
    disabled_kinds: Mapping[str, str] = field(default_factory=dict)
    unconfirmed_kinds: frozenset[str] = frozenset()
    """STYPs whose use as such is assumed, even where the name itself is confirmed."""
    unconfirmed_envelope: frozenset[str] = frozenset()
    """Envelope names that are assumed."""
