"""OPERATION_AUDIT: every manual act, with what came of it (spec 2.3)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Connection, String, Text, bindparam, insert, select

from msgexchange.ids import MailboxId
from msgexchange.ports import Act
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import ERROR_CHARS, operation_audit
from msgexchange.store.types import Stamp

_AUDIT = operation_audit.c
_INSERT = insert(operation_audit)
SUBJECT_CHARS = 200
ACTOR_CHARS = 200
_OF_MESSAGE = (
    select(operation_audit)
    .where(
        _AUDIT.at >= bindparam("since", type_=Stamp()),
        _AUDIT.outcome.like(bindparam("named", type_=Text())),
    )
    .order_by(_AUDIT.at, _AUDIT.audit_id)
)
_ABOUT = (
    select(operation_audit)
    .where(_AUDIT.subject == bindparam("subject", type_=String(SUBJECT_CHARS)))
    .order_by(_AUDIT.at, _AUDIT.audit_id)
)


class AuditRows:
    """Statements on the audit; a transaction is the caller's."""

    def __init__(self, nonce: Callable[[], int]) -> None:
        self._nonce = nonce

    def write(self, connection: Connection, *acts: Act) -> None:
        if acts:
            connection.execute(_INSERT, [self._row(act) for act in acts])

    def _row(self, act: Act) -> dict[str, Any]:
        outcome = act.outcome
        if act.outcomes:
            outcomes = [{"id": id_, "outcome": text} for id_, text in act.outcomes.items()]
            outcome = orjson.dumps({"outcome": act.outcome, "messages": outcomes}).decode()
        return {
            "audit_id": self._nonce(),
            "at": act.at,
            "actor": act.by[:ACTOR_CHARS],
            "act": act.act,
            "subject": None if act.subject is None else act.subject[:SUBJECT_CHARS],
            "reason": None if act.reason is None else act.reason[:ERROR_CHARS],
            "outcome": outcome,
        }


class AuditReads:
    """The ``Audit`` of the own database."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def acts(
        self,
        *,
        act: str | None = None,
        by: str | None = None,
        since: datetime | None = None,
        limit: int,
    ) -> Sequence[Act]:
        query = select(operation_audit)
        given: dict[str, Any] = {"limit": limit}
        if act is not None:
            query = query.where(_AUDIT.act == bindparam("act"))
            given["act"] = act
        if by is not None:
            query = query.where(_AUDIT.actor == bindparam("by"))
            given["by"] = by
        if since is not None:
            query = query.where(_AUDIT.at >= bindparam("since", type_=Stamp()))
            given["since"] = since
        query = query.order_by(_AUDIT.at.desc(), _AUDIT.audit_id).limit(bindparam("limit"))
        with self._sessions.look() as connection:
            return [_act(row) for row in connection.execute(query, given)]


def acts_of(connection: Connection, message_id: MailboxId, *, since: datetime) -> tuple[Act, ...]:
    """Discards and replays of a message, oldest first; ``since`` it was taken in."""
    given = {"since": since, "named": f'%{{"id":{message_id},%'}
    return tuple(_act(row) for row in connection.execute(_OF_MESSAGE, given))


def acts_about(connection: Connection, subject: str) -> Sequence[Act]:
    """What has exactly this subject (``event 40``), oldest first."""
    return [_act(row) for row in connection.execute(_ABOUT, {"subject": subject})]


def _act(row: Any) -> Act:
    outcome, outcomes = _outcomes(row.outcome)
    return Act(
        at=row.at,
        by=row.actor,
        act=row.act,
        subject=row.subject,
        reason=row.reason,
        outcome=outcome,
        outcomes=outcomes,
    )


def _outcomes(text: str | None) -> tuple[str | None, Mapping[MailboxId, str]]:
    if text is None or not text.startswith('{"outcome":'):
        return text, {}
    said = orjson.loads(text)
    return said["outcome"], {MailboxId(one["id"]): one["outcome"] for one in said["messages"]}
