"""A catalogue for people to read: one row a name, and what still is assumed (spec 1.3)."""

from dataclasses import dataclass

from msgexchange.codec.catalogue import Catalogue, Group, GroupShape

_CONFIRMED = "confirmed"
_ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueRow:
    """One name; ``target`` is where it is kept, ``mark`` how sure the name is."""

    name: str
    use: str
    shape: str
    fields: str
    clear_rule: str
    target: str
    mark: str


def rows(catalogue: Catalogue) -> list[CatalogueRow]:
    """Groups with their kinds, then reference types, then ignored types, as the file has them."""
    return [
        *(_group_row(catalogue, group) for group in catalogue.groups.values()),
        *(
            CatalogueRow(
                name=reference.name,
                use="TYPE",
                shape="reference",
                fields=f"{reference.record}: key {reference.key}, name {reference.label}",
                clear_rule="replaces all" if reference.replaces_all else "merges",
                target="ref_master",
                mark=_mark(confirmed=reference.confirmed),
            )
            for reference in catalogue.references.values()
        ),
        *(
            CatalogueRow(
                name=name,
                use="TYPE",
                shape="ignored",
                fields="",
                clear_rule="",
                target="",
                mark=_CONFIRMED,
            )
            for name in sorted(catalogue.ignored)
        ),
    ]


def unconfirmed(catalogue: Catalogue) -> list[str]:
    """Every assumed name, with its use: what the site has to confirm."""
    return [
        *(f"envelope {name}" for name in sorted(catalogue.unconfirmed_envelope)),
        *(f"element {group.name}" for group in catalogue.groups.values() if not group.confirmed),
        *(
            f"field {group.name}/{field}"
            for group in catalogue.groups.values()
            for field in group.columns
            if field in group.unconfirmed_fields
        ),
        *(f"STYP {name}" for name in sorted(catalogue.unconfirmed_kinds)),
        *(
            f"reference type {reference.name} with {reference.record} and {reference.key}"
            for reference in catalogue.references.values()
            if not reference.confirmed
        ),
    ]


def _group_row(catalogue: Catalogue, group: Group) -> CatalogueRow:
    return CatalogueRow(
        name=group.name,
        use=_use(catalogue, group),
        shape=group.shape.value,
        fields=", ".join(_field(group, name) for name in group.columns if name),
        clear_rule=group.clear_rule.value,
        target=_target(group),
        mark=_mark(confirmed=group.confirmed),
    )


def _use(catalogue: Catalogue, group: Group) -> str:
    """The STYPs that change the group, with ``?`` where that is assumed."""
    kinds = {**catalogue.kinds, **catalogue.disabled_kinds}
    words = [
        "STYP "
        + styp
        + ("?" if styp in catalogue.unconfirmed_kinds else "")
        + (" (off)" if styp in catalogue.disabled_kinds else "")
        for styp, name in kinds.items()
        if name == group.name
    ]
    return ", ".join(words) or "plan only"


def _field(group: Group, name: str) -> str:
    column = group.columns[name]
    return (
        name
        + ("?" if name in group.unconfirmed_fields else "")
        + ("=sequence" if name == group.sequence else "")
        + (f"->{column}" if column and column not in {name.lower(), "source_seq"} else "")
    )


def _target(group: Group) -> str:
    if group.shape is GroupShape.COLLECTION:
        kind = f" {group.route_kind}" if group.route_kind else ""
        return f"{group.table}{kind}" if group.table else "extra"
    columns = [column for column in group.columns.values() if column]
    return f"flight_schd.{', '.join(columns)}" if columns else "extra"


def _mark(*, confirmed: bool) -> str:
    return _CONFIRMED if confirmed else _ASSUMED
