"""What one message changed, field by field, as FLIGHT_CHANGE keeps it (spec 2.3)."""

from collections.abc import Iterator

from msgexchange.flight.decision import Decision
from msgexchange.flight.merge import difference
from msgexchange.flight.state import Json


def provenance(decision: Decision) -> list[list[Json | None]]:
    """``[field, old, new]`` of what one message changed, null for absent (spec 2.3).

    Against what is stored, so that a version can be unfolded again; ``status`` and
    ``operationDay`` stand beside the protocol names. A field it said again as it was has old and
    new alike: whoever replays an older message must know who said it last.
    """
    changed = list(_provenance(decision))
    told = {name for name, _, _ in changed}
    after = decision.after
    again = sorted(set(decision.said) - told)
    values: dict[str, Json | None] = {
        "status": after.status.value,
        "operationDay": after.operation_day.isoformat() if after.operation_day else None,
    }
    content = after.content
    return changed + [
        [name, value, value]
        for name in again
        for value in (values[name] if name in values else content.get(name),)
    ]


def _provenance(decision: Decision) -> Iterator[list[Json | None]]:
    before, after = decision.before, decision.after
    old_status = before.status.value if before else None
    if old_status != after.status.value:
        yield ["status", old_status, after.status.value]
    old_day = before.operation_day.isoformat() if before and before.operation_day else None
    new_day = after.operation_day.isoformat() if after.operation_day else None
    if old_day != new_day:
        yield ["operationDay", old_day, new_day]
    old = before.content if before else {}
    changes = difference(old, after.content)
    for name in sorted({*changes.set, *changes.replaced, *changes.cleared}):
        yield [name, old.get(name), after.content.get(name)]
