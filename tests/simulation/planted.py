"""Faults planted into the product, one at a time: each one a patch of one function."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from msgexchange.lifecycle import watermark
from msgexchange.pipeline import delivery, dispatch, ingest, publish_flights
from msgexchange.ports import Acknowledged
from msgexchange.store.pump import Pump

Plant = Callable[[pytest.MonkeyPatch], None]


def _plan(change: Callable[[Any, Any], Any]) -> Plant:
    """Scans that decide otherwise: ``change`` gets the listed rows and the true plan."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        def wrong(w: int, rows: Any, ledger: Any, **named: Any) -> Any:
            return change(rows, watermark.plan_scan(w, rows, ledger, **named))

        patch.setattr(ingest, "plan_scan", wrong)

    return plant


def _batch(**without: Any) -> Plant:
    """Commits that leave a part of the batch out."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        begin = Pump.transaction

        def transaction(self: Any, fence: Any) -> Any:
            return _Less(begin(self, fence), without)

        patch.setattr(Pump, "transaction", transaction)

    return plant


class _Less:
    def __init__(self, context: Any, without: Mapping[str, Any]) -> None:
        self._context = context
        self._without = without

    def __enter__(self) -> Any:
        self._inner = self._context.__enter__()
        return self

    def __exit__(self, *failure: object) -> Any:
        return self._context.__exit__(*failure)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def commit_batch(self, batch: Any, **named: Any) -> None:
        self._inner.commit_batch(replace(batch, **self._without), **named)


def _answers(owner: Any, name: str, change: Callable[[Any], Any]) -> Plant:
    """The true function, its answer changed."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        true = getattr(owner, name)
        patch.setattr(owner, name, lambda *given, **named: change(true(*given, **named)))

    return plant


def _unsent(_producer: Any, entries: Any, **_rules: Any) -> Any:
    return {entry.event_id: Acknowledged(0, 0) for entry in entries}


PLANTED: Mapping[str, Plant] = {
    "W past a gap": _plan(
        lambda rows, plan: replace(plan, watermark=rows[-1].message_id) if rows else plan
    ),
    "first listed row not taken in": _plan(
        lambda _rows, plan: replace(plan, enqueue=plan.enqueue[1:])
    ),
    "provenance left out": _batch(changes=()),
    "events left out": _batch(events=()),
    "flights left out": _batch(flights=()),
    "msg: sent without sending": lambda patch: patch.setattr(dispatch, "send", _unsent),
    "schd: sent without sending": lambda patch: patch.setattr(publish_flights, "send", _unsent),
    "records of another flight's key": _answers(
        delivery, "record_of", lambda record: replace(record, key=b"0")
    ),
}

CAUGHT_BY: Mapping[str, tuple[int, str]] = {
    "W past a gap": (1, "I1"),
    "first listed row not taken in": (1, "I1"),
    "provenance left out": (1, "I3"),
    "events left out": (1, "I3"),
    "flights left out": (1, "I11"),
    "msg: sent without sending": (1, "I6"),
    "schd: sent without sending": (1, "I6"),
    "records of another flight's key": (1, "I12"),
}
"""The seed that catches it, and the invariant that it breaks."""
