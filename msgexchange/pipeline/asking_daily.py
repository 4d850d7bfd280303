"""Requests by the clock: a plan, and reference data, once a day (spec 5.1)."""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgexchange.ids import Fence, RequestId
from msgexchange.lifecycle.request import Wanted
from msgexchange.pipeline.asking import AskingRules, Order, register
from msgexchange.pipeline.daily import Done, Slices
from msgexchange.ports.requests import RequestStore


class AskDaily:
    """A ``Duty``: asks for everything of the list, each once a day however often it is begun."""

    def __init__(
        self,
        wanted: Callable[[datetime], Sequence[Wanted]],
        *,
        store: RequestStore,
        fence: Fence,
        rules: AskingRules,
        new_request_id: Callable[[], RequestId],
        wake_sender: Callable[[], None] = lambda: None,
    ) -> None:
        """``wanted`` says what to ask for, at the airport's time it is given."""
        self._wanted = wanted
        self._store = store
        self._fence = fence
        self._rules = rules
        self._new_request_id = new_request_id
        self._wake_sender = wake_sender

    def slices(self, *, now: datetime) -> Slices:
        local = now.astimezone(self._rules.zone)
        by = f"schedule {local.date()}"
        asked = 0
        for wanted in self._wanted(local):
            if self._ask(wanted, by, now):
                asked += 1
            yield
        return Done(f"{asked} requests registered")

    def _ask(self, wanted: Wanted, by: str, now: datetime) -> bool:
        order = Order(request_id=self._new_request_id(), by=by, reason="daily", at=now)
        with self._store.leader_transaction(self._fence) as transaction:
            if wanted.kind in transaction.kinds_by(by):
                return False
            register(transaction, wanted, order, self._rules)
        self._wake_sender()
        return True
