"""Predictions and orders as programs read them."""

from collections.abc import Mapping

from msgexchange.pipeline.prediction import FieldChange, Newer, Prediction
from msgexchange.pipeline.replaying import Preflight, ids_of
from msgexchange.ports import ReplayOrder
from msgexchange.web.answers import written_time, written_time_or_none


def preflight_document(seen: Preflight) -> Mapping[str, object]:
    """What each message would do, and the token that orders it."""
    return {
        "token": seen.token,
        "backwards": any(one.backwards for one in seen.predictions),
        "messages": [prediction_document(one) for one in seen.predictions],
    }


def prediction_document(one: Prediction) -> Mapping[str, object]:
    return {
        "id": one.message_id,
        "was": one.was,
        "outcome": one.outcome,
        "refused": one.refused,
        "changes": [_change(change) for change in one.changes],
        "backwards": bool(one.backwards),
        "newer": {flid: [_newer(n) for n in newer] for flid, newer in one.newer.items()},
        "events": [
            {"target": target.value, "type": type_.value, "flid": flid}
            for target, type_, flid in one.events
        ],
    }


def order_document(order: ReplayOrder) -> Mapping[str, object]:
    """An order; ``outcome`` null while it waits for the leader."""
    return {
        "order": order.order_id,
        "by": order.by,
        "reason": order.reason,
        "allowRegression": order.allow_regression,
        "createdAt": written_time(order.created_at),
        "finishedAt": written_time_or_none(order.finished_at),
        "outcome": order.outcome,
        "done": is_done(order),
        "messages": list(ids_of(order)),
    }


def is_done(order: ReplayOrder) -> bool:
    """It was carried out, not refused."""
    return (order.outcome or "").startswith("done")


def _change(change: FieldChange) -> Mapping[str, object]:
    back = change.backwards
    return {
        "about": change.about,
        "field": change.field,
        "old": change.old,
        "new": change.new,
        "backwards": None if back is None else _newer(back),
    }


def _newer(newer: Newer) -> Mapping[str, object]:
    return {"message": newer.message_id, "at": written_time(newer.at)}
