"""How the entries of a catalogue must go together; each problem says where, what, what to do."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgexchange.codec.catalogue import ClearRule, GroupShape
from msgexchange.codec.catalogue_schema import Draft, GroupEntry, nearest
from msgexchange.codec.columns import (
    DETAIL_COLUMNS,
    EXCEPTION_COLUMNS,
    ROUTE_KINDS,
    ROUTE_TABLE,
    SCALAR_COLUMNS,
    SEQUENCE_COLUMN,
    TEXT_COLUMNS,
)

_SINGLE_COLUMNS = {GroupShape.SCALAR: SCALAR_COLUMNS, GroupShape.TEXT: TEXT_COLUMNS}
_COLLECTION_KEYS = ("table", "route_kind", "sequence", "clear")


def rule_problems(draft: Draft) -> Iterator[str]:
    """Everything that is wrong between entries that are each well-formed."""
    for name, group in draft.groups.items():
        yield from _group_problems(f"groups.{name}", group)
    yield from _doubled_columns(draft)
    yield from _doubled_tables(draft)
    yield from _kind_problems(draft)
    yield from _envelope_problems(draft)
    yield from _type_problems(draft)


def _group_problems(path: str, group: GroupEntry) -> Iterator[str]:
    match group.shape:
        case GroupShape.SCALAR | GroupShape.TEXT:
            yield from _refused_keys(path, group, (*_COLLECTION_KEYS, "fields"))
            yield from _column_problems(path, group.column, _SINGLE_COLUMNS[group.shape])
            if group.shape is GroupShape.TEXT:
                yield from _refused_keys(path, group, ("time",))
        case GroupShape.EXCEPTION:
            yield from _refused_keys(path, group, (*_COLLECTION_KEYS, "column", "time"))
            yield from _field_problems(path, group, EXCEPTION_COLUMNS)
        case GroupShape.COLLECTION:
            yield from _refused_keys(path, group, ("column", "time"))
            yield from _table_problems(path, group)
            yield from _sequence_problems(path, group)


def _refused_keys(path: str, group: GroupEntry, keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        if key in group.model_fields_set:
            yield f"{path}.{key}: the shape {group.shape} has none; remove it"


def _column_problems(path: str, column: str | None, known: Iterable[str]) -> Iterator[str]:
    if column is not None and column not in known:
        yield f"{path}.column: unknown column {column!r}; {nearest(column, known)}"


def _field_problems(path: str, group: GroupEntry, known: Iterable[str]) -> Iterator[str]:
    if not group.fields:
        yield f"{path}.fields: the shape {group.shape} needs at least one field; list them"
    for name in _doubled(field.name for field in group.fields):
        yield f"{path}.fields: {name} stands there twice; keep one"
    for name in _doubled(field.column for field in group.fields if field.column):
        yield f"{path}.fields: two fields go to the column {name}; give each its own"
    for index, field in enumerate(group.fields):
        yield from _column_problems(f"{path}.fields[{index}]", field.column, known)


def _table_problems(path: str, group: GroupEntry) -> Iterator[str]:
    if group.table is None:
        yield from _field_problems(path, group, ())
    elif group.table not in DETAIL_COLUMNS:
        yield f"{path}.table: unknown table {group.table!r}; {nearest(group.table, DETAIL_COLUMNS)}"
    else:
        known_columns = (*DETAIL_COLUMNS[group.table], SEQUENCE_COLUMN)
        yield from _field_problems(path, group, known_columns)
    if group.table == ROUTE_TABLE:
        if group.route_kind not in ROUTE_KINDS:
            yield f"{path}.route_kind: needs one of {', '.join(ROUTE_KINDS)}; fill it in"
    elif group.route_kind is not None:
        yield f"{path}.route_kind: only the table {ROUTE_TABLE} has one; remove it"


def _sequence_problems(path: str, group: GroupEntry) -> Iterator[str]:
    by_zero = (group.clear or ClearRule.NEVER) is ClearRule.SEQUENCE_ZERO
    if group.sequence is None and by_zero:
        yield f"{path}.clear: {ClearRule.SEQUENCE_ZERO} needs a sequence; name the field"
    if group.sequence is not None and not by_zero:
        yield (
            f"{path}.sequence: the clear rule needs none; remove it, "
            f'or write clear = "{ClearRule.SEQUENCE_ZERO}"'
        )
    names = [field.name for field in group.fields]
    if group.sequence is not None and group.sequence not in names:
        yield f"{path}.sequence: {group.sequence} is no field; {nearest(group.sequence, names)}"
    for index, field in enumerate(group.fields):
        is_sequence = field.name == group.sequence
        if group.table is not None and is_sequence != (field.column == SEQUENCE_COLUMN):
            yield (
                f"{path}.fields[{index}].column: {SEQUENCE_COLUMN} is the sequence's column and "
                "only its; correct the column or the sequence"
            )


def _doubled_columns(draft: Draft) -> Iterator[str]:
    columns: Counter[str] = Counter()
    for group in draft.groups.values():
        if group.shape is GroupShape.EXCEPTION:
            columns.update(field.column for field in group.fields if field.column)
        elif group.column:
            columns[group.column] += 1
    for name, group in draft.groups.items():
        used = {field.column for field in group.fields} | {group.column}
        for column in sorted(filter(None, used)):
            if group.shape is not GroupShape.COLLECTION and columns[column] > 1:
                yield f"groups.{name}: another group goes to the column {column} too; change one"


def _doubled_tables(draft: Draft) -> Iterator[str]:
    tables = Counter((group.table, group.route_kind) for group in draft.groups.values())
    for name, group in draft.groups.items():
        if group.table is not None and tables[group.table, group.route_kind] > 1:
            yield f"groups.{name}.table: another group goes to {group.table} too; change one"


def _kind_problems(draft: Draft) -> Iterator[str]:
    for name, kind in draft.kinds.items():
        if name == draft.envelope.deletion:
            yield f"kinds.{name}: {name} is the deletion and always known; remove it"
        group = kind.group or name
        if f"groups.{group}" not in draft.declared:
            yield f"kinds.{name}: there is no group {group}; {nearest(group, draft.groups)}"


def _envelope_problems(draft: Draft) -> Iterator[str]:
    envelope = draft.envelope
    names = envelope.names
    for name in _doubled(names.values()):
        keys = ", ".join(sorted(key for key, value in names.items() if value == name))
        yield f"envelope: {keys} are all {name}; give each its own name"
    for key, name in names.items():
        if name in draft.groups and key != "scheduled_time":
            yield f"groups.{name}: the envelope's {key} has this name too; rename one"
    scheduled = draft.groups.get(envelope.scheduled_time)
    if f"groups.{envelope.scheduled_time}" not in draft.declared or (
        scheduled is not None and not (scheduled.shape is GroupShape.SCALAR and scheduled.time)
    ):
        yield (
            f"envelope.scheduled_time: {envelope.scheduled_time} must be a scalar group with "
            "time = true; add it"
        )
    known = {*names.values(), *envelope.further}
    for name in envelope.confirmed:
        if name not in known:
            yield f"envelope.confirmed: {name} is no envelope name; {nearest(name, known)}"


def _type_problems(draft: Draft) -> Iterator[str]:
    envelope = draft.envelope
    for name in _doubled(draft.ignored):
        yield f"ignored: {name} stands there twice; keep one"
    taken = {envelope.plan, envelope.operation, envelope.deletion}
    for name in sorted({*draft.ignored, *draft.references} & taken):
        section = "ignored" if name in draft.ignored else "references"
        yield f"{section}.{name}: {name} is a message type of the envelope; rename one"
    for name in sorted(set(draft.ignored) & set(draft.references)):
        yield f"references.{name}: the type is ignored as well; keep one of the two"
    for name, reference in draft.references.items():
        if envelope.count in {reference.record, reference.key}:
            yield f"references.{name}: {envelope.count} is the count; name another element"
        for place in reference.codes:
            yield from _code_problems(draft, f"references.{name}.codes", place)


def _code_problems(draft: Draft, path: str, place: str) -> Iterator[str]:
    """A place is GROUP for a scalar, GROUP/FIELD for anything with fields."""
    name, _, field = place.partition("/")
    group = draft.groups.get(name)
    if group is None:
        if f"groups.{name}" not in draft.declared:
            yield f"{path}: there is no group {name}; {nearest(name, draft.groups)}"
        return
    if group.shape is GroupShape.TEXT or (group.shape is GroupShape.SCALAR) == bool(field):
        yield f"{path}: {place} is no place; write SCALAR, or GROUP/FIELD of a group with fields"
        return
    fields = [one.name for one in group.fields]
    if field and field not in fields:
        yield f"{path}: {name} has no field {field}; {nearest(field, fields)}"


def _doubled(names: Iterable[str]) -> list[str]:
    return sorted(name for name, times in Counter(names).items() if times > 1)
