"""PROC_STATE as the pump reads and writes it (spec 3.3-3.5)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    Table,
    bindparam,
    func,
    literal_column,
    select,
    union_all,
    update,
)

from msgexchange.codec.encode import encode
from msgexchange.ids import Identity, MailboxId
from msgexchange.lifecycle.identity import Holder
from msgexchange.lifecycle.states import TERMINAL, ErrorClass, InboxEntry, MessageState
from msgexchange.ports import HeadsMoved, MessageResult
from msgexchange.store.bulk import Among, Bulk, ChangeRows, Given
from msgexchange.store.tables import (
    DEAD,
    FAILED,
    IDENTITY_CHARS,
    PENDING,
    SKIPPED,
    found_by_key,
    inbox_cursor,
    proc_state,
    proc_state_hst,
)

IS_OPEN = proc_state.c.state.in_([PENDING, FAILED])
"""Written as the partial index writes it."""

_WATERMARK = select(inbox_cursor.c.watermark).scalar_subquery()
HEADS = (
    select(
        proc_state.c.msg_id,
        proc_state.c.state,
        proc_state.c.identity_key,
        proc_state.c.attempts,
        proc_state.c.next_attempt_at,
        proc_state.c.processing_started_at,
        proc_state.c.received_at,
        proc_state.c.text_bytes,
        proc_state.c.traceparent,
    )
    .where(IS_OPEN, proc_state.c.msg_id <= _WATERMARK)
    .order_by(proc_state.c.msg_id)
    .limit(bindparam("limit"))
)

_SET_BY_RESULT = (
    "state",
    "identity_key",
    "sndr",
    "type",
    "styp",
    "seqn",
    "dttm",
    "sent_at",
    "digest",
    "attempts",
    "next_attempt_at",
    "error_class",
    "error",
    "note",
    "unknown_names",
    "kept",
    "processing_started_at",
    "finished_at",
    "backfill_next_at",
)
_KEPT_BY_REPLAY = frozenset(
    {"identity_key", "sndr", "type", "styp", "seqn", "dttm", "sent_at", "digest", "note"}
)
_SET_BY_REPLAY = frozenset(_SET_BY_RESULT) - {"processing_started_at", "backfill_next_at"}


class Messages:
    """Statements on PROC_STATE and, for identities, its archive; a transaction is the caller's."""

    def __init__(self, bulk: Bulk) -> None:
        identity = String(IDENTITY_CHARS)
        self._holders = bulk.select(identity, _holders)
        given = {
            name: proc_state.c[name].type for name in ("msg_id", "last_cause", *_SET_BY_RESULT)
        }
        self._settle = bulk.change(given, _settle)
        self._resettle = bulk.change(given, _resettle)
        self._unbind = [_unbind(bulk, table) for table in (proc_state, proc_state_hst)]

    def heads(self, connection: Connection, limit: int) -> list[InboxEntry]:
        return [inbox_entry(row) for row in connection.execute(HEADS, {"limit": limit})]

    def confirm_heads(self, connection: Connection, entries: Sequence[InboxEntry]) -> None:
        """``HeadsMoved`` unless these are the smallest non-terminal ids, in the same state."""
        rows = connection.execute(HEADS, {"limit": len(entries)})
        found = [(row.msg_id, row.state, row.attempts) for row in rows]
        if found != [(entry.message_id, entry.state, entry.attempts) for entry in entries]:
            raise HeadsMoved(
                f"heads {[entry.message_id for entry in entries]} are no longer the next to work on"
            )

    def holders(
        self, connection: Connection, identities: Iterable[Identity]
    ) -> dict[Identity, Holder]:
        return {
            Identity(row.identity_key): Holder(
                message_id=MailboxId(row.msg_id),
                state=MessageState(row.state),
                error_class=None if row.error_class is None else ErrorClass(row.error_class),
                sent_at=None if row.sent_at is None else datetime.fromisoformat(row.sent_at),
                discarded=row.discarded_at is not None,
                digest=row.digest,
            )
            for row in self._holders(connection, list(identities))
        }

    def settle(
        self, connection: Connection, results: Sequence[MessageResult], *, now: datetime
    ) -> None:
        """Write what became of each; ``HeadsMoved`` if one is terminal already."""
        given_up = {r.taken_over_from for r in results if r.taken_over_from is not None}
        keys = [{"msg_id": id_} for id_ in sorted(given_up)]
        for unbind in self._unbind:
            unbind(connection, keys)
        settled = self._settle(connection, [_row(result, given_up, now) for result in results])
        if settled != len(results):
            raise HeadsMoved(
                f"{len(results) - settled} of {len(results)} heads were settled before"
            )

    def resettle(
        self, connection: Connection, results: Sequence[MessageResult], *, now: datetime
    ) -> None:
        """Write what a replay made of each; ``HeadsMoved`` if one is not to be replayed any more.

        The mark of a message stays as it is: it was terminal before, and is again.
        """
        # Also within the set: what stays bound would clash with who takes it over.
        given_up = {id_ for r in results if (id_ := _gives_up(r)) is not None}
        keys = [{"msg_id": id_} for id_ in sorted(given_up)]
        for unbind in self._unbind:
            unbind(connection, keys)
        settled = self._resettle(connection, [_row(result, given_up, now) for result in results])
        if settled != len(results):
            raise HeadsMoved(
                f"{len(results) - settled} of {len(results)} messages were replayed or discarded"
            )


def _gives_up(result: MessageResult) -> MailboxId | None:
    """Whose identity the message takes over (``reuses:<id>``, ``supersedes:<id>``)."""
    _, _, holder = (result.decision_note or "").partition(":")
    return MailboxId(int(holder)) if holder else None


def inbox_entry(row: Any) -> InboxEntry:
    """One row of ``HEADS``."""
    return InboxEntry(
        message_id=MailboxId(row.msg_id),
        state=MessageState(row.state),
        identity=None if row.identity_key is None else Identity(row.identity_key),
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        processing_started_at=row.processing_started_at,
        received_at=row.received_at,
        text_bytes=row.text_bytes,
        traceparent=row.traceparent,
    )


def _holders(among: Among) -> Select[Any]:
    def of(table: Table) -> Select[Any]:
        columns = ("identity_key", "msg_id", "state", "error_class", "sent_at", "discarded_at")
        return select(*(table.c[name] for name in columns), table.c.digest).where(
            among(table.c.identity_key)
        )

    return select(union_all(of(proc_state), of(proc_state_hst)).subquery("h"))


def _settle(given: Given) -> Any:
    values: dict[str, ColumnElement[Any]] = {name: given(name) for name in _SET_BY_RESULT}
    # The class of the last charged failure stays known when the message succeeds in the end.
    values["last_cause"] = func.coalesce(given("last_cause"), proc_state.c.last_cause)
    # A take-over is recorded at the attempt that made it; a retry finds the identity its own.
    values["note"] = func.coalesce(given("note"), proc_state.c.note)
    return (
        update(proc_state)
        .where(proc_state.c.msg_id == given("msg_id"), found_by_key(IS_OPEN))
        .values(values)
    )


def _resettle(given: Given) -> Any:
    taken = _SET_BY_REPLAY - _KEPT_BY_REPLAY
    values: dict[str, ColumnElement[Any]] = {name: given(name) for name in sorted(taken)}
    # Identity and history are kept, whatever a text that is read differently now says.
    values |= {
        name: func.coalesce(given(name), proc_state.c[name])
        for name in (*_KEPT_BY_REPLAY, "last_cause")
    }
    values["processing_started_at"] = literal_column("NULL")
    values["replayed_at"] = given("finished_at")
    return (
        update(proc_state)
        .where(
            proc_state.c.msg_id == given("msg_id"),
            found_by_key(proc_state.c.state.in_([DEAD, SKIPPED])),
            proc_state.c.discarded_at.is_(None),
        )
        .values(values)
    )


def _unbind(bulk: Bulk, table: Table) -> ChangeRows:
    return bulk.change(
        {"msg_id": BigInteger()},
        lambda given: (
            update(table)
            .where(table.c.msg_id == given("msg_id"))
            .values(identity_key=literal_column("NULL"))
        ),
    )


def _row(result: MessageResult, given_up: set[MailboxId], now: datetime) -> Mapping[str, Any]:
    terminal = result.state in TERMINAL
    meta = result.meta
    return {
        "msg_id": result.message_id,
        "state": result.state.value,
        "identity_key": None if result.message_id in given_up else result.identity,
        "sndr": meta.sndr,
        "type": meta.type,
        "styp": meta.styp,
        "seqn": meta.seqn,
        "dttm": meta.dttm,
        "sent_at": None if result.sent_at is None else result.sent_at.isoformat(),
        "digest": result.digest,
        "attempts": result.attempts,
        "next_attempt_at": result.next_attempt_at,
        "error_class": result.error_class,
        "last_cause": result.last_cause,
        "error": result.error,
        "note": result.decision_note,
        "kept": encode(result.kept).decode() if result.kept else None,
        "unknown_names": encode(result.unknown).decode() if result.unknown else None,
        "processing_started_at": result.started_at,
        "finished_at": now if terminal else None,
        "backfill_next_at": now if terminal and result.mark_intended else None,
    }
