"""Every table of the own database (spec 2.3); migrations create them, a test compares both.

Names are lower-case and at most 30 characters, indexes and constraints too (Oracle 11g).
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    Date,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    case,
    literal_column,
    text,
)

from msgexchange.codec.columns import (
    DETAIL_COLUMNS,
    EXCEPTION_COLUMNS,
    ROUTE_TABLE,
    SCALAR_COLUMNS,
    SEQUENCE_COLUMN,
    TEXT_COLUMNS,
)
from msgexchange.store.types import AsReceived, Stamp

FLID_CHARS = 32
IDENTITY_CHARS = 300
"""Four parts of 32 characters, each escaped at worst, a day and the separators."""
ERROR_CHARS = 2_000

metadata = MetaData()

# Written as literals in every statement, so that a prepared plan can use the partial indexes.
PENDING = literal_column("'PENDING'", String())
FAILED = literal_column("'FAILED'", String())
DEAD = literal_column("'DEAD'", String())
SKIPPED = literal_column("'SKIPPED'", String())
SENT = literal_column("'SENT'", String())
SUPERSEDED = literal_column("'SUPERSEDED'", String())
SCHD = literal_column("'KAFKA:schd'", String())


def _partial(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, postgresql_where=text(where), sqlite_where=text(where))


def names_of(table: Table) -> tuple[str, ...]:
    """Column names as plain text, in table order."""
    return tuple(str(column.name) for column in table.columns)


def found_by_key(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The same condition, but no way to start from it.

    Rows that are named by their key are to be found by it. Left plain, a planner whose statistics
    of a queue are out of date, as they always are, would rather walk everything that waits. In this
    form it takes almost every row to be of that kind; as an equation it would take almost none to
    be, and then compare each with every key.
    """
    return case((condition, literal_column("1"))).is_not(None)


# --- inbox -------------------------------------------------------------------------------------


def _message_columns() -> list[Column[Any]]:
    return [
        Column("msg_id", BigInteger, autoincrement=False, nullable=False),
        Column("state", String(9), nullable=False),
        Column("identity_key", String(IDENTITY_CHARS)),
        Column("sndr", AsReceived(32)),
        Column("type", AsReceived(32)),
        Column("styp", AsReceived(32)),
        Column("seqn", AsReceived(32)),
        Column("dttm", AsReceived(32)),
        Column("sent_at", String(32)),
        Column("digest", String(32)),
        Column("text_bytes", BigInteger),
        Column("attempts", Integer, nullable=False),
        Column("next_attempt_at", Stamp),
        Column("error_class", String(16)),
        Column("last_cause", String(16)),
        Column("error", Text),
        Column("note", Text),
        Column("unknown_names", Text),
        Column("kept", Text),
        Column("received_at", Stamp, nullable=False),
        Column("processing_started_at", Stamp),
        Column("finished_at", Stamp),
        Column("backfill_at", Stamp),
        Column("backfill_next_at", Stamp),
        Column("backfill_attempts", Integer, nullable=False),
        Column("backfill_error", Text),
        Column("discarded_at", Stamp),
        Column("traceparent", String(64)),
        Column("replayed_at", Stamp),
    ]


proc_state = Table(
    "proc_state",
    metadata,
    *_message_columns(),
    PrimaryKeyConstraint("msg_id", name="pk_proc_state"),
    UniqueConstraint("identity_key", name="uq_proc_state_identity"),
    CheckConstraint(
        "state IN ('PENDING', 'FAILED', 'SUCCEEDED', 'SKIPPED', 'DEAD')", name="ck_proc_state"
    ),
    CheckConstraint(
        "state <> 'FAILED' OR (next_attempt_at IS NOT NULL AND error_class IS NOT NULL "
        "AND attempts > 0)",
        name="ck_proc_failed",
    ),
    CheckConstraint("state = 'FAILED' OR next_attempt_at IS NULL", name="ck_proc_not_failed"),
    CheckConstraint(
        "(state = 'DEAD' AND error_class IS NOT NULL) OR state = 'FAILED' "
        "OR (state <> 'DEAD' AND error_class IS NULL)",
        name="ck_proc_error_class",
    ),
    CheckConstraint(
        "(state IN ('PENDING', 'FAILED') AND finished_at IS NULL AND backfill_at IS NULL "
        "AND backfill_next_at IS NULL AND discarded_at IS NULL) "
        "OR (state NOT IN ('PENDING', 'FAILED') AND finished_at IS NOT NULL)",
        name="ck_proc_finished",
    ),
    CheckConstraint("backfill_at IS NULL OR backfill_next_at IS NULL", name="ck_proc_marked_once"),
    _partial("ix_proc_open", "msg_id", "state", where="state IN ('PENDING', 'FAILED')"),
    _partial("ix_proc_dead", "msg_id", "error_class", where="state = 'DEAD'"),
    _partial(
        "ix_proc_unmarked", "msg_id", "backfill_next_at", where="backfill_next_at IS NOT NULL"
    ),
    _partial("ix_proc_skipped", "msg_id", where="state = 'SKIPPED'"),
)

proc_state_hst = Table(
    "proc_state_hst",
    metadata,
    *_message_columns(),
    Column("archived_at", Stamp, nullable=False),
    PrimaryKeyConstraint("msg_id", name="pk_proc_state_hst"),
    UniqueConstraint("identity_key", name="uq_proc_hst_identity"),
)

inbox_cursor = Table(
    "inbox_cursor",
    metadata,
    Column("name", String(16), nullable=False),
    Column("watermark", BigInteger, nullable=False),
    Column("began_after", BigInteger, nullable=False),
    Column("begun_at", Stamp),
    Column("halted_at", Stamp),
    Column("halted_why", String(ERROR_CHARS)),
    Column("step_rule_off_at", Stamp),
    PrimaryKeyConstraint("name", name="pk_inbox_cursor"),
    CheckConstraint("watermark >= 0", name="ck_inbox_cursor"),
)

inbox_gap = Table(
    "inbox_gap",
    metadata,
    Column("lo", BigInteger, autoincrement=False, nullable=False),
    Column("hi", BigInteger, nullable=False),
    Column("step", Integer, autoincrement=False, nullable=False),
    Column("first_seen", Stamp, nullable=False),
    Column("looks", Integer, nullable=False),
    Column("decision", String(9), nullable=False),
    Column("decided_at", Stamp),
    Column("why", String(ERROR_CHARS)),
    Column("next_look_at", Stamp),
    PrimaryKeyConstraint("lo", "step", name="pk_inbox_gap"),
    CheckConstraint("hi >= lo", name="ck_gap_range"),
    CheckConstraint("decision IN ('OPEN', 'FILLED', 'PERMANENT', 'LATE')", name="ck_gap_decision"),
    CheckConstraint(
        "(decision = 'OPEN' AND decided_at IS NULL) "
        "OR (decision <> 'OPEN' AND decided_at IS NOT NULL)",
        name="ck_gap_decided",
    ),
    Index("ix_gap_above", "hi", "decision"),
    _partial("ix_gap_watch", "next_look_at", where="next_look_at IS NOT NULL"),
)

attempt_log = Table(
    "attempt_log",
    metadata,
    Column("msg_id", BigInteger, autoincrement=False, nullable=False),
    Column("round", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", Stamp, nullable=False),
    Column("error_class", String(16), nullable=False),
    Column("error", Text),
    PrimaryKeyConstraint("msg_id", "round", "attempt", name="pk_attempt_log"),
)

dead_text = Table(
    "dead_text",
    metadata,
    Column("msg_id", BigInteger, autoincrement=False, nullable=False),
    Column("text_zlib", LargeBinary, nullable=False),
    Column("kept_at", Stamp, nullable=False),
    PrimaryKeyConstraint("msg_id", name="pk_dead_text"),
)

exhausted_kind = Table(
    "exhausted_kind",
    metadata,
    Column("type", AsReceived(32), nullable=False),
    Column("styp", AsReceived(32), nullable=False),
    Column("codec_version", String(200), nullable=False),
    PrimaryKeyConstraint("codec_version", "type", "styp", name="pk_exhausted_kind"),
)

replay_order = Table(
    "replay_order",
    metadata,
    Column("order_id", String(32), nullable=False),
    Column("ordered_by", String(200), nullable=False),
    Column("reason", String(ERROR_CHARS), nullable=False),
    Column("allow_regression", SmallInteger, nullable=False),
    Column("plan", Text, nullable=False),
    Column("created_at", Stamp, nullable=False),
    Column("finished_at", Stamp),
    Column("outcome", Text),
    Column("begun", Integer, nullable=False, server_default="0"),
    PrimaryKeyConstraint("order_id", name="pk_replay_order"),
    _partial("ix_replay_open", "created_at", where="finished_at IS NULL"),
)

# --- flights -----------------------------------------------------------------------------------

flight_schd = Table(
    "flight_schd",
    metadata,
    Column("flid", String(FLID_CHARS), nullable=False),
    *(Column(name, AsReceived()) for name in SCALAR_COLUMNS),
    *(Column(name, AsReceived()) for name in EXCEPTION_COLUMNS),
    *(Column(name, Text) for name in TEXT_COLUMNS),
    Column("operation_day", Date),
    Column("status", String(8), nullable=False),
    Column("state_version", BigInteger, nullable=False),
    Column("last_message_id", BigInteger, nullable=False),
    Column("empty_groups", Text),
    Column("extra", Text),
    Column("created_at", Stamp, nullable=False),
    Column("updated_at", Stamp, nullable=False),
    PrimaryKeyConstraint("flid", name="pk_flight_schd"),
    CheckConstraint("status IN ('ACTIVE', 'DELETED')", name="ck_flight_status"),
    Index("ix_flight_day", "operation_day", "flid"),
)


def _detail(name: str, columns: Sequence[str]) -> Table:
    routed = name == ROUTE_TABLE
    key = ("flid", "route_kind", "ordinal") if routed else ("flid", "ordinal")
    return Table(
        name,
        metadata,
        Column("flid", String(FLID_CHARS), nullable=False),
        *([Column("route_kind", String(4), nullable=False)] if routed else []),
        Column("ordinal", Integer, autoincrement=False, nullable=False),
        Column(SEQUENCE_COLUMN, AsReceived()),
        *(Column(column, AsReceived()) for column in columns),
        Column("extra", Text),
        Column("record_version", BigInteger, nullable=False),
        PrimaryKeyConstraint(*key, name=f"pk_{name}"),
    )


details = {name: _detail(name, columns) for name, columns in DETAIL_COLUMNS.items()}
"""The nine detail tables by name."""

flight_change = Table(
    "flight_change",
    metadata,
    Column("flid", String(FLID_CHARS), nullable=False),
    Column("state_version", BigInteger, autoincrement=False, nullable=False),
    Column("msg_id", BigInteger, nullable=False),
    Column("changed_at", Stamp, nullable=False),
    Column("changes", Text, nullable=False),
    PrimaryKeyConstraint("flid", "state_version", name="pk_flight_change"),
    Index("ix_change_message", "msg_id"),
)

flight_last_version = Table(
    "flight_last_version",
    metadata,
    Column("flid", String(FLID_CHARS), nullable=False),
    Column("state_version", BigInteger, nullable=False),
    Column("ended_at", Stamp, nullable=False),
    PrimaryKeyConstraint("flid", name="pk_flight_last_version"),
)

flight_hst = Table(
    "flight_hst",
    metadata,
    Column("flid", String(FLID_CHARS), nullable=False),
    Column("state_version", BigInteger, autoincrement=False, nullable=False),
    Column("operation_day", Date),
    Column("flight", Text, nullable=False),
    Column("written_at", Stamp, nullable=False),
    PrimaryKeyConstraint("flid", "state_version", name="pk_flight_hst"),
    Index("ix_flight_hst_day", "operation_day", "flid"),
)

plan_day = Table(
    "plan_day",
    metadata,
    Column("operation_day", Date, nullable=False),
    Column("sent_at", String(32), nullable=False),
    PrimaryKeyConstraint("operation_day", name="pk_plan_day"),
)

schd_snap_log = Table(
    "schd_snap_log",
    metadata,
    Column("msg_id", BigInteger, autoincrement=False, nullable=False),
    Column("received_at", Stamp, nullable=False),
    Column("kind", String(65), nullable=False),
    Column("scope_start", Date),
    Column("scope_end", Date),
    Column("flights", Integer, nullable=False),
    Column("outcome", String(32), nullable=False),
    Column("reason", Text),
    PrimaryKeyConstraint("msg_id", name="pk_schd_snap_log"),
    Index("ix_schd_snap_scope", "scope_end", "received_at"),
)

# --- outbox ------------------------------------------------------------------------------------

msg_event = Table(
    "msg_event",
    metadata,
    Column("event_id", BigInteger, autoincrement=False, nullable=False),
    Column("nonce", BigInteger, nullable=False),
    Column("target", String(16), nullable=False),
    Column("event_type", String(9), nullable=False),
    Column("partition_key", String(FLID_CHARS), nullable=False),
    Column("flid", String(FLID_CHARS)),
    Column("msg_id", BigInteger, nullable=False),
    Column("state_version", BigInteger),
    Column("operation_day", Date),
    Column("payload", Text),
    Column("redelivery_of", BigInteger),
    Column("traceparent", String(64)),
    Column("created_at", Stamp, nullable=False),
    PrimaryKeyConstraint("event_id", name="pk_msg_event"),
    CheckConstraint(
        "event_type IN ('UPSERT', 'TOMBSTONE', 'NOTICE', 'REQUEST')", name="ck_event_type"
    ),
    Index("ix_event_message", "msg_id"),
)
"""Written once, never updated: payloads are wide, and what changes is in ``msg_event_state``."""

msg_event_state = Table(
    "msg_event_state",
    metadata,
    Column("event_id", BigInteger, autoincrement=False, nullable=False),
    Column("target", String(16), nullable=False),
    Column("flid", String(FLID_CHARS)),
    Column("payload_bytes", Integer, nullable=False),
    Column("state", String(10), nullable=False),
    Column("superseded_by", BigInteger),
    Column("redelivered_as", BigInteger),
    Column("flush_id", String(36)),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_at", Stamp),
    Column("error", Text),
    Column("sent_at", Stamp),
    Column("partition_", Integer),
    Column("offset_", BigInteger),
    PrimaryKeyConstraint("event_id", name="pk_msg_event_state"),
    CheckConstraint(
        "state IN ('PENDING', 'SENT', 'SUPERSEDED', 'CANCELLED', 'DEAD')", name="ck_event_state"
    ),
    CheckConstraint(
        "(state = 'SENT' AND sent_at IS NOT NULL) OR (state <> 'SENT' AND sent_at IS NULL)",
        name="ck_event_sent",
    ),
    CheckConstraint(
        "(state = 'SUPERSEDED' AND superseded_by IS NOT NULL) "
        "OR (state <> 'SUPERSEDED' AND superseded_by IS NULL)",
        name="ck_event_superseded",
    ),
    CheckConstraint("state = 'PENDING' OR next_attempt_at IS NULL", name="ck_event_waiting"),
    _partial("ix_event_pending", "target", "event_id", where="state = 'PENDING'"),
    _partial(
        "ix_event_schd",
        "flid",
        "target",
        "event_id",
        where="state = 'PENDING' AND target = 'KAFKA:schd'",
    ),
    _partial(
        "ix_event_waiting",
        "target",
        "next_attempt_at",
        where="state = 'PENDING' AND next_attempt_at IS NOT NULL",
    ),
    _partial("ix_event_dead", "flid", "target", "event_id", where="state = 'DEAD'"),
)

delivery_mark = Table(
    "delivery_mark",
    metadata,
    Column("target", String(16), nullable=False),
    Column("event_id", BigInteger, nullable=False),
    Column("nonce", BigInteger, nullable=False),
    Column("marked_at", Stamp, nullable=False),
    PrimaryKeyConstraint("target", name="pk_delivery_mark"),
)

# --- requests and reference data ---------------------------------------------------------------

req_track = Table(
    "req_track",
    metadata,
    Column("request_id", String(32), nullable=False),
    Column("kind", String(48), nullable=False),
    Column("open_kind", String(48)),
    Column("state", String(10), nullable=False),
    Column("first_day", Date),
    Column("last_day", Date),
    Column("days_done", Text),
    Column("rtype", String(32)),
    Column("seqn", String(32), nullable=False),
    Column("requested_by", String(200), nullable=False),
    Column("event_id", BigInteger, autoincrement=False, nullable=False),
    Column("sends", Integer, nullable=False),
    Column("resent", Integer, nullable=False),
    Column("outbound_after", BigInteger),
    Column("outbound_id", BigInteger),
    Column("created_at", Stamp, nullable=False),
    Column("send_started_at", Stamp),
    Column("sent_at", Stamp),
    Column("finished_at", Stamp),
    Column("answer_msg_id", BigInteger),
    Column("matched_by", String(16)),
    Column("error", Text),
    PrimaryKeyConstraint("request_id", name="pk_req_track"),
    UniqueConstraint("open_kind", name="uq_req_open_kind"),
    CheckConstraint(
        "state IN ('REGISTERED', 'SENDING', 'SENT', 'DONE', 'EXPIRED', 'FAILED')",
        name="ck_req_state",
    ),
    CheckConstraint(
        "(state IN ('REGISTERED', 'SENDING', 'SENT') AND open_kind = kind "
        "AND finished_at IS NULL) OR (state IN ('DONE', 'EXPIRED', 'FAILED') "
        "AND open_kind IS NULL AND finished_at IS NOT NULL)",
        name="ck_req_open",
    ),
    CheckConstraint("state <> 'SENDING' OR send_started_at IS NOT NULL", name="ck_req_sending"),
    CheckConstraint("state <> 'SENT' OR sent_at IS NOT NULL", name="ck_req_sent"),
    Index("ix_req_created", "created_at"),
)
"""``open_kind`` is the kind while a request is open: no two of a kind can be."""

ref_master = Table(
    "ref_master",
    metadata,
    Column("rtype", String(32), nullable=False),
    Column("rkey", String(200), nullable=False),
    Column("record", Text, nullable=False),
    Column("last_message_id", BigInteger, nullable=False),
    Column("updated_at", Stamp, nullable=False),
    PrimaryKeyConstraint("rtype", "rkey", name="pk_ref_master"),
)

# --- leadership, the store itself, people ------------------------------------------------------

pipeline_lock = Table(
    "pipeline_lock",
    metadata,
    Column("name", String(32), nullable=False),
    Column("fence", BigInteger),
    Column("next_event_id", BigInteger),
    Column("next_seqn", BigInteger),
    PrimaryKeyConstraint("name", name="pk_pipeline_lock"),
)
LEADER_ROW = "LEADER"
WRITER_ROW = "FLIGHT_SCHD_WRITER"

leader_lease = Table(
    "leader_lease",
    metadata,
    Column("name", String(32), nullable=False),
    Column("owner", String(64)),
    Column("until_at", Stamp),
    PrimaryKeyConstraint("name", name="pk_leader_lease"),
)

standby = Table(
    "standby",
    metadata,
    Column("owner", String(64), nullable=False),
    Column("seen_at", Stamp, nullable=False),
    Column("able", SmallInteger, nullable=False),
    PrimaryKeyConstraint("owner", name="pk_standby"),
)

open_attempt = Table(
    "open_attempt",
    metadata,
    Column("name", String(16), nullable=False),
    Column("msg_id", BigInteger),
    Column("fence", BigInteger),
    Column("opened_at", Stamp),
    PrimaryKeyConstraint("name", name="pk_open_attempt"),
)
PUMP_ROW = "PUMP"

store_info = Table(
    "store_info",
    metadata,
    Column("name", String(16), nullable=False),
    Column("store_id", String(36), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("identity_rule", String(32), nullable=False),
    PrimaryKeyConstraint("name", name="pk_store_info"),
    CheckConstraint("generation >= 1", name="ck_store_generation"),
)
STORE_ROW = "STORE"
CURSOR_ROW = "CURSOR"

job_run = Table(
    "job_run",
    metadata,
    Column("job", String(32), nullable=False),
    Column("day", Date),
    Column("started_at", Stamp),
    Column("finished_at", Stamp),
    Column("outcome", Text),
    Column("kept_since", Stamp),
    PrimaryKeyConstraint("job", name="pk_job_run"),
)

operation_audit = Table(
    "operation_audit",
    metadata,
    Column("audit_id", BigInteger, autoincrement=False, nullable=False),
    Column("at", Stamp, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("act", String(32), nullable=False),
    Column("subject", String(200)),
    Column("reason", String(ERROR_CHARS)),
    Column("outcome", Text),
    PrimaryKeyConstraint("audit_id", name="pk_operation_audit"),
    Index("ix_audit_at", "at"),
)
