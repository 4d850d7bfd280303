"""Inbox, gap ledger, dead letters, replay orders."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STAMP = (
    sa.DateTime()
    .with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
    .with_variant(sa.TIMESTAMP(), "oracle")
)


def upgrade() -> None:
    _proc_state()
    _proc_state_hst()
    _inbox_cursor()
    _inbox_gap()
    _attempt_log()
    _dead_text()
    _exhausted_kind()
    _replay_order()
    _tune()


def _proc_state() -> None:
    op.create_table(
        "proc_state",
        sa.Column("msg_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(length=9), nullable=False),
        sa.Column("identity_key", sa.String(length=300), nullable=True),
        sa.Column("sndr", sa.String(length=32), nullable=True),
        sa.Column("type", sa.String(length=32), nullable=True),
        sa.Column("styp", sa.String(length=32), nullable=True),
        sa.Column("seqn", sa.String(length=32), nullable=True),
        sa.Column("dttm", sa.String(length=32), nullable=True),
        sa.Column("sent_at", sa.String(length=32), nullable=True),
        sa.Column("digest", sa.String(length=32), nullable=True),
        sa.Column("text_bytes", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", STAMP, nullable=True),
        sa.Column("error_class", sa.String(length=16), nullable=True),
        sa.Column("last_cause", sa.String(length=16), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("unknown_names", sa.Text(), nullable=True),
        sa.Column("kept", sa.Text(), nullable=True),
        sa.Column("received_at", STAMP, nullable=False),
        sa.Column("processing_started_at", STAMP, nullable=True),
        sa.Column("finished_at", STAMP, nullable=True),
        sa.Column("backfill_at", STAMP, nullable=True),
        sa.Column("backfill_next_at", STAMP, nullable=True),
        sa.Column("backfill_attempts", sa.Integer(), nullable=False),
        sa.Column("backfill_error", sa.Text(), nullable=True),
        sa.Column("discarded_at", STAMP, nullable=True),
        sa.Column("traceparent", sa.String(length=64), nullable=True),
        sa.CheckConstraint(
            "(state = 'DEAD' AND error_class IS NOT NULL) OR state = 'FAILED' OR (state <> "
            "'DEAD' AND error_class IS NULL)",
            name="ck_proc_error_class",
        ),
        sa.CheckConstraint(
            "(state IN ('PENDING', 'FAILED') AND finished_at IS NULL AND backfill_at IS NULL "
            "AND backfill_next_at IS NULL AND discarded_at IS NULL) OR (state NOT IN "
            "('PENDING', 'FAILED') AND finished_at IS NOT NULL)",
            name="ck_proc_finished",
        ),
        sa.CheckConstraint(
            "state <> 'FAILED' OR (next_attempt_at IS NOT NULL AND error_class IS NOT NULL "
            "AND attempts > 0)",
            name="ck_proc_failed",
        ),
        sa.CheckConstraint(
            "state = 'FAILED' OR next_attempt_at IS NULL", name="ck_proc_not_failed"
        ),
        sa.CheckConstraint(
            "state IN ('PENDING', 'FAILED', 'SUCCEEDED', 'SKIPPED', 'DEAD')", name="ck_proc_state"
        ),
        sa.CheckConstraint(
            "backfill_at IS NULL OR backfill_next_at IS NULL", name="ck_proc_marked_once"
        ),
        sa.PrimaryKeyConstraint("msg_id", name="pk_proc_state"),
        sa.UniqueConstraint("identity_key", name="uq_proc_state_identity"),
    )
    op.create_index(
        "ix_proc_dead",
        "proc_state",
        ["msg_id", "error_class"],
        unique=False,
        postgresql_where=sa.text("state = 'DEAD'"),
        sqlite_where=sa.text("state = 'DEAD'"),
    )
    op.create_index(
        "ix_proc_open",
        "proc_state",
        ["msg_id", "state"],
        unique=False,
        postgresql_where=sa.text("state IN ('PENDING', 'FAILED')"),
        sqlite_where=sa.text("state IN ('PENDING', 'FAILED')"),
    )
    op.create_index(
        "ix_proc_unmarked",
        "proc_state",
        ["msg_id", "backfill_next_at"],
        unique=False,
        postgresql_where=sa.text("backfill_next_at IS NOT NULL"),
        sqlite_where=sa.text("backfill_next_at IS NOT NULL"),
    )


def _proc_state_hst() -> None:
    op.create_table(
        "proc_state_hst",
        sa.Column("msg_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(length=9), nullable=False),
        sa.Column("identity_key", sa.String(length=300), nullable=True),
        sa.Column("sndr", sa.String(length=32), nullable=True),
        sa.Column("type", sa.String(length=32), nullable=True),
        sa.Column("styp", sa.String(length=32), nullable=True),
        sa.Column("seqn", sa.String(length=32), nullable=True),
        sa.Column("dttm", sa.String(length=32), nullable=True),
        sa.Column("sent_at", sa.String(length=32), nullable=True),
        sa.Column("digest", sa.String(length=32), nullable=True),
        sa.Column("text_bytes", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", STAMP, nullable=True),
        sa.Column("error_class", sa.String(length=16), nullable=True),
        sa.Column("last_cause", sa.String(length=16), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("unknown_names", sa.Text(), nullable=True),
        sa.Column("kept", sa.Text(), nullable=True),
        sa.Column("received_at", STAMP, nullable=False),
        sa.Column("processing_started_at", STAMP, nullable=True),
        sa.Column("finished_at", STAMP, nullable=True),
        sa.Column("backfill_at", STAMP, nullable=True),
        sa.Column("backfill_next_at", STAMP, nullable=True),
        sa.Column("backfill_attempts", sa.Integer(), nullable=False),
        sa.Column("backfill_error", sa.Text(), nullable=True),
        sa.Column("discarded_at", STAMP, nullable=True),
        sa.Column("traceparent", sa.String(length=64), nullable=True),
        sa.Column("archived_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("msg_id", name="pk_proc_state_hst"),
        sa.UniqueConstraint("identity_key", name="uq_proc_hst_identity"),
    )


def _inbox_cursor() -> None:
    op.create_table(
        "inbox_cursor",
        sa.Column("name", sa.String(length=16), nullable=False),
        sa.Column("watermark", sa.BigInteger(), nullable=False),
        sa.Column("began_after", sa.BigInteger(), nullable=False),
        sa.Column("begun_at", STAMP, nullable=True),
        sa.Column("halted_at", STAMP, nullable=True),
        sa.Column("halted_why", sa.String(length=2000), nullable=True),
        sa.Column("step_rule_off_at", STAMP, nullable=True),
        sa.CheckConstraint("watermark >= 0", name="ck_inbox_cursor"),
        sa.PrimaryKeyConstraint("name", name="pk_inbox_cursor"),
    )


def _inbox_gap() -> None:
    op.create_table(
        "inbox_gap",
        sa.Column("lo", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hi", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("first_seen", STAMP, nullable=False),
        sa.Column("looks", sa.Integer(), nullable=False),
        sa.Column("decision", sa.String(length=9), nullable=False),
        sa.Column("decided_at", STAMP, nullable=True),
        sa.Column("why", sa.String(length=2000), nullable=True),
        sa.Column("next_look_at", STAMP, nullable=True),
        sa.CheckConstraint(
            "(decision = 'OPEN' AND decided_at IS NULL) OR (decision <> 'OPEN' AND decided_at"
            " IS NOT NULL)",
            name="ck_gap_decided",
        ),
        sa.CheckConstraint(
            "decision IN ('OPEN', 'FILLED', 'PERMANENT', 'LATE')", name="ck_gap_decision"
        ),
        sa.CheckConstraint("hi >= lo", name="ck_gap_range"),
        sa.PrimaryKeyConstraint("lo", "step", name="pk_inbox_gap"),
    )
    op.create_index("ix_gap_above", "inbox_gap", ["hi", "decision"], unique=False)
    op.create_index(
        "ix_gap_watch",
        "inbox_gap",
        ["next_look_at"],
        unique=False,
        postgresql_where=sa.text("next_look_at IS NOT NULL"),
        sqlite_where=sa.text("next_look_at IS NOT NULL"),
    )


def _attempt_log() -> None:
    op.create_table(
        "attempt_log",
        sa.Column("msg_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("at", STAMP, nullable=False),
        sa.Column("error_class", sa.String(length=16), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("msg_id", "round", "attempt", name="pk_attempt_log"),
    )


def _dead_text() -> None:
    op.create_table(
        "dead_text",
        sa.Column("msg_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("text_zlib", sa.LargeBinary(), nullable=False),
        sa.Column("kept_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("msg_id", name="pk_dead_text"),
    )


def _exhausted_kind() -> None:
    op.create_table(
        "exhausted_kind",
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("styp", sa.String(length=32), nullable=False),
        sa.Column("codec_version", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("codec_version", "type", "styp", name="pk_exhausted_kind"),
    )


def _replay_order() -> None:
    op.create_table(
        "replay_order",
        sa.Column("order_id", sa.String(length=32), nullable=False),
        sa.Column("ordered_by", sa.String(length=200), nullable=False),
        sa.Column("reason", sa.String(length=2000), nullable=False),
        sa.Column("allow_regression", sa.SmallInteger(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("created_at", STAMP, nullable=False),
        sa.Column("finished_at", STAMP, nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("order_id", name="pk_replay_order"),
    )


def _tune() -> None:
    """Every message updates its row twice and leaves the partial indexes: room and eager vacuum."""
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            "ALTER TABLE proc_state SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01, "
            "autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, "
            "autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 2000)"
        )
