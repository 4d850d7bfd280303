"""A catalogue from its TOML text, validated whole (spec 1.3)."""

import hashlib
import tomllib
from collections.abc import Mapping
from importlib import resources

from msgexchange.codec.catalogue import (
    Catalogue,
    ClearRule,
    Envelope,
    Group,
    GroupShape,
    ReferenceType,
)
from msgexchange.codec.catalogue_rules import rule_problems
from msgexchange.codec.catalogue_schema import (
    Draft,
    EnvelopeEntry,
    GroupEntry,
    KindEntry,
    read_draft,
)
from msgexchange.codec.encode import encode

_FINGERPRINT_CHARACTERS = 16
_FIXED_RULES = {
    GroupShape.SCALAR: ClearRule.NEVER,
    GroupShape.EXCEPTION: ClearRule.EMPTY_ELEMENT_CLEARS,
    GroupShape.TEXT: ClearRule.EMPTY_ELEMENT_CLEARS,
}


class CatalogueError(Exception):
    """A catalogue that cannot be used; ``problems`` has every reason, one a line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("the catalogue cannot be used:\n" + "\n".join(problems))
        self.problems = problems


def default_catalogue_text() -> str:
    """The TOML text of the catalogue that ships with the package."""
    return resources.files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8")


def default_catalogue() -> Catalogue:
    return load(default_catalogue_text())


def problems(text: str) -> list[str]:
    """Everything that is wrong with a catalogue's text: where, what, what to do. Empty: usable."""
    return _checked(text)[1].problems


def load(text: str) -> Catalogue:
    """The catalogue; ``CatalogueError`` with every problem if there is any."""
    document, draft = _checked(text)
    if draft.problems:
        raise CatalogueError(draft.problems)
    return Catalogue(
        envelope=_envelope(draft.envelope),
        groups={name: _group(name, entry) for name, entry in draft.groups.items()},
        kinds=_kinds(draft.kinds, enabled=True),
        disabled_kinds=_kinds(draft.kinds, enabled=False),
        unconfirmed_kinds=frozenset(
            name for name, entry in draft.kinds.items() if not entry.confirmed
        ),
        unconfirmed_envelope=_unconfirmed_envelope(draft),
        ignored=frozenset(draft.ignored),
        references={
            name: ReferenceType(name=name, **{**entry.model_dump(), "codes": tuple(entry.codes)})
            for name, entry in draft.references.items()
        },
        fingerprint=hashlib.sha256(encode(document)).hexdigest()[:_FINGERPRINT_CHARACTERS],
    )


def _checked(text: str) -> tuple[Mapping[str, object], Draft]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        return {}, Draft(problems=[f"not TOML: {exc}; correct the file there"])
    draft = read_draft(document)
    draft.problems.extend(rule_problems(draft))
    return document, draft


def _envelope(entry: EnvelopeEntry) -> Envelope:
    return Envelope(
        **entry.names,
        identifying=frozenset(entry.identifying),
        answer_echo=entry.answer_echo,
        error_echo=entry.error_echo,
    )


def _unconfirmed_envelope(draft: Draft) -> frozenset[str]:
    # A name that is a group as well (SCTM, FLNO) carries its mark there.
    names = {*draft.envelope.names.values(), *draft.envelope.further}
    return frozenset(names - set(draft.envelope.confirmed) - set(draft.groups))


def _kinds(entries: Mapping[str, KindEntry], *, enabled: bool) -> Mapping[str, str]:
    return {
        name: entry.group or name for name, entry in entries.items() if entry.enabled is enabled
    }


def _group(name: str, entry: GroupEntry) -> Group:
    is_single = entry.shape in {GroupShape.SCALAR, GroupShape.TEXT}
    times = {field.name for field in entry.fields if field.time} | ({""} if entry.time else set())
    return Group(
        name=name,
        shape=entry.shape,
        clear_rule=_FIXED_RULES.get(entry.shape) or entry.clear or ClearRule.NEVER,
        table=entry.table,
        route_kind=entry.route_kind,
        sequence=entry.sequence,
        columns=(
            {"": entry.column}
            if is_single
            else {field.name: field.column for field in entry.fields}
        ),
        time_fields=frozenset(times),
        confirmed=entry.confirmed,
        unconfirmed_fields=frozenset(f.name for f in entry.fields if not f.confirmed),
    )
