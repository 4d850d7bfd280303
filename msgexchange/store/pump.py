"""The pump's transaction: heads confirmed, read, and everything of a batch written (spec 3.5)."""

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Date,
    String,
    bindparam,
    delete,
    insert,
    select,
)

from msgexchange.codec.catalogue import Catalogue
from msgexchange.flight.reference import Record, RecordKey
from msgexchange.flight.state import FlightState
from msgexchange.ids import Fence, Flid, Identity, MailboxId
from msgexchange.lifecycle.identity import Holder
from msgexchange.lifecycle.request import Request
from msgexchange.lifecycle.states import InboxEntry, MessageState
from msgexchange.ports import (
    Batch,
    ChangeRow,
    MarkOutcome,
    MessageResult,
    OpenAttempt,
    PumpTransaction,
    SnapshotEntry,
)
from msgexchange.store import attempts
from msgexchange.store.audit import AuditRows
from msgexchange.store.bulk import Bulk
from msgexchange.store.flight_rows import Strays
from msgexchange.store.flights import Flights
from msgexchange.store.marks import Marks
from msgexchange.store.messages import Messages
from msgexchange.store.references import ReferenceRows
from msgexchange.store.requests import RequestRows
from msgexchange.store.sessions import Sessions
from msgexchange.store.sweeping import Removal
from msgexchange.store.tables import (
    FLID_CHARS,
    attempt_log,
    dead_text,
    exhausted_kind,
    flight_change,
    flight_last_version,
    plan_day,
    schd_snap_log,
)
from msgexchange.store.transaction import Appender, HeldWriter, check_fence, leader_transaction

_KINDS = select(exhausted_kind.c.type, exhausted_kind.c.styp).where(
    exhausted_kind.c.codec_version == bindparam("codec_version")
)
_FORGET_SNAPSHOT = delete(schd_snap_log).where(schd_snap_log.c.msg_id == bindparam("id"))
_LOG_SNAPSHOT = insert(schd_snap_log)


class PumpStatements:
    """Every statement a batch may run, built once."""

    def __init__(
        self, bulk: Bulk, catalogue: Catalogue, appender: Appender, audit: AuditRows
    ) -> None:
        id_ = BigInteger()
        self.requests = RequestRows(bulk)
        self.audit = audit
        self.messages = Messages(bulk)
        self.flights = Flights(bulk, catalogue)
        self.removal = Removal(bulk)
        self.marks = Marks(bulk)
        self.references = ReferenceRows(bulk)
        self.appender = appender
        self.insert_changes = bulk.insert(flight_change)
        self.insert_attempts = bulk.insert(attempt_log)
        self.insert_kinds = bulk.insert(exhausted_kind)
        self.insert_texts = bulk.insert(dead_text)
        self.remove_texts = bulk.change(
            {"id": id_}, lambda given: delete(dead_text).where(dead_text.c.msg_id == given("id"))
        )
        self.insert_plans = bulk.insert(plan_day)
        self.remove_plans = bulk.change(
            {"day": Date()},
            lambda given: delete(plan_day).where(plan_day.c.operation_day == given("day")),
        )
        self.plans = bulk.select(
            Date(), lambda among: select(plan_day).where(among(plan_day.c.operation_day))
        )
        self.last_versions = bulk.select(
            String(FLID_CHARS),
            lambda among: select(
                flight_last_version.c.flid, flight_last_version.c.state_version
            ).where(among(flight_last_version.c.flid)),
        )


class Pump:
    """The ``PumpStore`` of the own database."""

    def __init__(self, sessions: Sessions, statements: PumpStatements) -> None:
        self._sessions = sessions
        self._run = statements

    def heads(self, limit: int) -> Sequence[InboxEntry]:
        with self._sessions.look() as connection:
            return self._run.messages.heads(connection, limit)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[PumpTransaction]:
        with leader_transaction(self._sessions, fence) as connection:
            yield _Transaction(connection, HeldWriter.lock(connection), self._run)

    def open_attempt(self, fence: Fence, message_id: MailboxId, *, now: datetime) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            attempts.begin(connection, fence, message_id, now=now)

    def close_attempt(self, fence: Fence) -> None:
        with leader_transaction(self._sessions, fence) as connection:
            attempts.close(connection)

    def found_attempt(self) -> OpenAttempt | None:
        with self._sessions.look() as connection:
            return attempts.found(connection)

    def record_marks(self, marked: Mapping[MailboxId, MarkOutcome], *, now: datetime) -> None:
        with self._sessions.write() as connection:
            self._run.marks.record(connection, marked, now=now)

    def log_snapshot(self, entry: SnapshotEntry) -> None:
        with self._sessions.write() as connection:
            connection.execute(_FORGET_SNAPSHOT, {"id": entry.message_id})
            connection.execute(
                _LOG_SNAPSHOT,
                {
                    "msg_id": entry.message_id,
                    "received_at": entry.received_at,
                    "kind": entry.kind,
                    "scope_start": entry.scope_start,
                    "scope_end": entry.scope_end,
                    "flights": entry.flights,
                    "outcome": entry.outcome,
                    "reason": entry.reason,
                },
            )

    def check_fence(self, fence: Fence) -> None:
        check_fence(self._sessions, fence)


class FoldReading:
    """The ``FoldReads`` of one connection."""

    def __init__(self, connection: Connection, run: PumpStatements) -> None:
        self._connection = connection
        self._run = run
        self._strays: dict[Flid, Strays] = {}

    def holders(self, identities: Iterable[Identity]) -> Mapping[Identity, Holder]:
        return self._run.messages.holders(self._connection, identities)

    def flights(self, flids: Iterable[Flid]) -> Mapping[Flid, FlightState]:
        found = self._run.flights.load(self._connection, list(flids))
        self._strays |= {flid: flight.strays for flid, flight in found.items() if flight.strays}
        return {flid: flight.state for flid, flight in found.items()}

    def changed_at(self, flids: Iterable[Flid]) -> Mapping[Flid, datetime]:
        return self._run.removal.changed_at(self._connection, list(flids))

    def last_versions(self, flids: Iterable[Flid]) -> Mapping[Flid, int]:
        rows = self._run.last_versions(self._connection, list(flids))
        return {Flid(row.flid): row.state_version for row in rows}

    def newest_plans(self, days: Iterable[date]) -> Mapping[date, datetime]:
        rows = self._run.plans(self._connection, list(days))
        return {row.operation_day: datetime.fromisoformat(row.sent_at) for row in rows}

    def references(self, keys: Iterable[RecordKey]) -> Mapping[RecordKey, Record]:
        return self._run.references.load(self._connection, list(keys))

    def exhausted_kinds(self, codec_version: str) -> frozenset[tuple[str, str]]:
        return _exhausted(self._connection, codec_version)

    def requests(self) -> Mapping[str, Request]:
        return self._run.requests.open(self._connection)


class _Transaction(FoldReading):
    """A ``PumpTransaction``; the fence and the writer row are held."""

    def __init__(self, connection: Connection, writer: HeldWriter, run: PumpStatements) -> None:
        super().__init__(connection, run)
        self._writer = writer

    def confirm_heads(self, entries: Sequence[InboxEntry]) -> None:
        self._run.messages.confirm_heads(self._connection, entries)

    def commit_batch(self, batch: Batch, *, now: datetime, codec_version: str) -> None:
        run, connection = self._run, self._connection
        run.messages.settle(connection, batch.messages, now=now)
        write_batch(self._writer, run, self._strays, batch, now=now, codec_version=codec_version)
        run.insert_attempts(connection, _attempt_rows(batch.messages, now))
        run.marks.record(connection, batch.marked, now=now)
        if batch.closes_attempt:
            attempts.close(connection)


def write_batch(
    writer: HeldWriter,
    run: PumpStatements,
    strays: Mapping[Flid, Strays],
    batch: Batch,
    *,
    now: datetime,
    codec_version: str,
) -> None:
    """What a batch brings beside the outcomes of its messages."""
    connection = writer.connection
    if batch.left:
        run.removal.remove(connection, batch.left, now=now)
    run.flights.write(connection, batch.flights, strays, now=now)
    run.insert_changes(connection, [change_row(change, now) for change in batch.changes])
    run.appender.append(writer, batch.events, now=now)
    _keep_texts(connection, run, batch.messages, now)
    _remember_plans(connection, run, batch.plan_days)
    run.references.write(connection, batch.references, now=now)
    _remember_kinds(connection, run, batch.exhausted_kinds, codec_version)
    run.requests.write(connection, batch.requests)
    run.audit.write(connection, *batch.acts)


def _keep_texts(
    connection: Connection, run: PumpStatements, results: Sequence[MessageResult], now: datetime
) -> None:
    kept = [result for result in results if result.dead_text is not None]
    run.remove_texts(connection, [{"id": result.message_id} for result in kept])
    run.insert_texts(connection, [_text_row(result, now) for result in kept])


def _remember_plans(
    connection: Connection, run: PumpStatements, plan_days: Mapping[date, datetime]
) -> None:
    run.remove_plans(connection, [{"day": day} for day in plan_days])
    run.insert_plans(
        connection,
        [
            {"operation_day": day, "sent_at": sent_at.isoformat()}
            for day, sent_at in plan_days.items()
        ],
    )


def _remember_kinds(
    connection: Connection,
    run: PumpStatements,
    kinds: Collection[tuple[str, str]],
    codec_version: str,
) -> None:
    if not kinds:
        return
    new = set(kinds) - _exhausted(connection, codec_version)
    run.insert_kinds(
        connection,
        [
            {"type": type_, "styp": styp, "codec_version": codec_version}
            for type_, styp in sorted(new)
        ],
    )


def _exhausted(connection: Connection, codec_version: str) -> frozenset[tuple[str, str]]:
    rows = connection.execute(_KINDS, {"codec_version": codec_version})
    return frozenset((row.type, row.styp) for row in rows)


def change_row(change: ChangeRow, now: datetime) -> dict[str, Any]:
    """Its FLIGHT_CHANGE row."""
    return {
        "flid": change.flid,
        "state_version": change.version,
        "msg_id": change.message_id,
        "changed_at": now,
        "changes": change.changes.decode(),
    }


def _attempt_rows(results: Sequence[MessageResult], now: datetime) -> list[dict[str, Any]]:
    """One row for each charged failure: a FAILED, or a DEAD with the class of its last cause."""
    return [
        {
            "msg_id": result.message_id,
            "round": 0,
            "attempt": result.attempts,
            "at": now,
            "error_class": result.last_cause or result.error_class,
            "error": result.error,
        }
        for result in results
        if result.state is MessageState.FAILED or result.last_cause is not None
    ]


def _text_row(result: MessageResult, now: datetime) -> dict[str, Any]:
    assert result.dead_text is not None
    octets = result.dead_text.encode(errors="surrogatepass")
    return {"msg_id": result.message_id, "text_zlib": zlib.compress(octets), "kept_at": now}
