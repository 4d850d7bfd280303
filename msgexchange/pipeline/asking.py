"""Asking the AODB: a request, its outbound event and its audit row in one commit (spec 5.1)."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from msgexchange.codec.catalogue import Envelope
from msgexchange.codec.request import RequestMeta, encode_request
from msgexchange.ids import RequestId
from msgexchange.lifecycle.request import (
    PlanWanted,
    ReferenceWanted,
    Request,
    RequestState,
    Wanted,
    written_seqn,
)
from msgexchange.ports.requests import RequestStore, RequestTransaction


class NotAskable(Exception):
    """Such a request cannot be sent from here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingRules:
    """How this site asks: as whom, in which names and time, for which types."""

    sender: str
    zone: ZoneInfo
    envelope: Envelope = field(default_factory=Envelope)
    reference_types: Collection[str] = ()
    allowed: bool = True
    """False in a shadow run."""

    def check(self, wanted: Wanted) -> None:
        """``NotAskable`` unless it can be asked for."""
        if not self.allowed:
            raise NotAskable("a shadow run writes nothing to the mailbox, so it asks for nothing")
        if isinstance(wanted, ReferenceWanted) and wanted.type not in self.reference_types:
            known = ", ".join(sorted(self.reference_types)) or "none"
            raise NotAskable(
                f"{wanted.type[:40]} is no reference type of the catalogue; there are {known}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Who asks, why and when; ``request_id`` is new."""

    request_id: RequestId
    by: str
    reason: str | None
    at: datetime
    resent: int = 0


def ask(store: RequestStore, wanted: Wanted, order: Order, rules: AskingRules) -> Request:
    """The registered request; an open one of its kind is EXPIRED by it.

    ``NotAskable`` where it cannot be sent. It goes out when the leader's sender comes to it.
    """
    rules.check(wanted)
    with store.transaction() as transaction:
        return register(transaction, wanted, order, rules)


def register(
    transaction: RequestTransaction, wanted: Wanted, order: Order, rules: AskingRules
) -> Request:
    """The same inside a transaction that does more."""
    older = transaction.open_requests().get(wanted.kind)
    if older is not None:
        why = f"replaced by request {order.request_id}"
        transaction.close(older.closed(RequestState.EXPIRED, why, now=order.at))
    seqn = written_seqn(transaction.take_seqn())
    request = Request(
        request_id=order.request_id,
        wanted=wanted,
        seqn=seqn,
        requested_by=order.by,
        created_at=order.at,
        resent=order.resent,
    )
    meta = RequestMeta(sndr=rules.sender, seqn=seqn, sent_at=order.at.astimezone(rules.zone))
    text = encode_request(wanted, meta, rules.envelope)
    return transaction.register(request, text, reason=order.reason)


def shown(wanted: Wanted) -> str:
    """What is asked for, in a few words."""
    match wanted:
        case PlanWanted(first_day, last_day):
            days = str(first_day) if first_day == last_day else f"{first_day} to {last_day}"
            return f"plan of {days}"
        case ReferenceWanted(type_):
            return f"reference data {type_}"
