"""The shape of a catalogue file, entry by entry; how entries go together is ``catalogue_rules``."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from msgexchange.codec.catalogue import ClearRule, Envelope, GroupShape

_NAME = re.compile(r"[^\W\d][\w.-]{0,31}")
_NO_NAME = "is no element name: a letter, then at most 31 letters, digits, . _ or -; rename it"

Name = Annotated[str, Field(pattern=rf"^{_NAME.pattern}$")]
"""A protocol name; it also fits META/STYP, which takes at most 32 characters."""


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FieldEntry(Entry):
    name: Name
    column: str | None = None
    time: bool = False
    confirmed: bool = False


class GroupEntry(Entry):
    shape: Annotated[GroupShape, Field(strict=False)]
    confirmed: bool = False
    table: str | None = None
    route_kind: str | None = None
    sequence: str | None = None
    clear: Annotated[ClearRule, Field(strict=False)] | None = None
    column: str | None = None
    time: bool = False
    fields: list[FieldEntry] = []


class KindEntry(Entry):
    group: str | None = None
    enabled: bool = True
    confirmed: bool = False


class ReferenceEntry(Entry):
    record: Name
    key: Name
    replaces_all: bool = False
    label: Name = "NAME"
    codes: list[str] = []
    confirmed: bool = False


_DEFAULTS = Envelope()


class EnvelopeEntry(Entry):
    plan: Name = _DEFAULTS.plan
    count: Name = _DEFAULTS.count
    planned_flight: Name = _DEFAULTS.planned_flight
    operation: Name = _DEFAULTS.operation
    deletion: Name = _DEFAULTS.deletion
    flid: Name = _DEFAULTS.flid
    operation_day: Name = _DEFAULTS.operation_day
    scheduled_time: Name = _DEFAULTS.scheduled_time
    identifying: list[Name] = sorted(_DEFAULTS.identifying)
    text_field: Name = _DEFAULTS.text_field
    plan_request: Name = _DEFAULTS.plan_request
    first_day: Name = _DEFAULTS.first_day
    last_day: Name = _DEFAULTS.last_day
    reference_request: Name = _DEFAULTS.reference_request
    reference_type: Name = _DEFAULTS.reference_type
    answer_echo: Name | None = None
    error_echo: Name | None = None
    confirmed: list[Name] = []

    @property
    def names(self) -> Mapping[str, str]:
        """Its element names by what they are for."""
        return self.model_dump(exclude={"identifying", "confirmed", "answer_echo", "error_echo"})

    @property
    def further(self) -> frozenset[str]:
        """Names that may say several things at once."""
        echoes = {self.answer_echo, self.error_echo}
        return frozenset({*self.identifying, *(name for name in echoes if name is not None)})


@dataclass(slots=True)
class Draft:
    """What could be read of a file: entries by name, and what is wrong so far.

    ``declared`` also has the names whose entries could not be read, so that one fault is not
    told twice.
    """

    envelope: EnvelopeEntry = field(default_factory=EnvelopeEntry)
    groups: dict[str, GroupEntry] = field(default_factory=dict)
    kinds: dict[str, KindEntry] = field(default_factory=dict)
    references: dict[str, ReferenceEntry] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


class IgnoredEntry(Entry):
    ignored: list[Name] = []


SECTIONS = ("ignored", "envelope", "groups", "kinds", "references")

AnyEntry = TypeVar("AnyEntry", bound=Entry)


def read_draft(document: Mapping[str, object]) -> Draft:
    """Every entry that can be read, and every fault of those that cannot."""
    draft = Draft()
    for section in document:
        if section not in SECTIONS:
            draft.problems.append(f"{section}: unknown section; {nearest(section, SECTIONS)}")
    envelope = _entry(draft, EnvelopeEntry, "envelope", document.get("envelope", {}))
    draft.envelope = envelope or EnvelopeEntry()
    draft.groups = _entries(draft, GroupEntry, document, "groups")
    draft.kinds = _entries(draft, KindEntry, document, "kinds")
    draft.references = _entries(draft, ReferenceEntry, document, "references")
    ignored = _entry(draft, IgnoredEntry, "", {"ignored": document.get("ignored", [])})
    draft.ignored = [] if ignored is None else list(ignored.ignored)
    return draft


def nearest(word: str, known: Iterable[str]) -> str:
    """What to do about a word nobody knows."""
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known are {', '.join(choices)}" if choices else "none is known here; remove it"


def _entries(
    draft: Draft, model: type[AnyEntry], document: Mapping[str, object], section: str
) -> dict[str, AnyEntry]:
    table = document.get(section, {})
    if not isinstance(table, dict):
        draft.problems.append(f"{section}: is no table; write [{section}]")
        return {}
    read = {}
    for name, raw in table.items():
        draft.declared.add(f"{section}.{name}")
        if not _NAME.fullmatch(name):
            draft.problems.append(f"{section}.{name}: {_NO_NAME}")
        entry = _entry(draft, model, f"{section}.{name}", raw)
        if entry is not None:
            read[name] = entry
    return read


def _entry(draft: Draft, model: type[AnyEntry], path: str, raw: object) -> AnyEntry | None:
    try:
        return model.model_validate(raw)
    except ValidationError as exc:
        draft.problems.extend(_problem(model, path, error) for error in exc.errors())
        return None


def _problem(model: type[Entry], path: str, error: ErrorDetails) -> str:
    where = path
    for part in error["loc"]:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else str(part)
    match error["type"]:
        case "extra_forbidden":
            owner = model if len(error["loc"]) == 1 else FieldEntry
            what = f"unknown key; {nearest(str(error['loc'][-1]), owner.model_fields)}"
        case "enum":
            choices = GroupShape if error["loc"][-1] == "shape" else ClearRule
            what = f"unknown value {error['input']!r}; {nearest(str(error['input']), choices)}"
        case "missing":
            what = "is missing; fill it in"
        case "string_pattern_mismatch":
            what = _NO_NAME
        case _:
            what = f"{error['msg'].lower()}, not {error['input']!r}; correct it"
    return f"{where}: {what}"
