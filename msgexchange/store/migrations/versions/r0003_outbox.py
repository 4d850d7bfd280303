"""Outbox: events written once, their delivery state beside them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STAMP = (
    sa.DateTime()
    .with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
    .with_variant(sa.TIMESTAMP(), "oracle")
)


def upgrade() -> None:
    _msg_event()
    _msg_event_state()
    _delivery_mark()
    _tune()


def _msg_event() -> None:
    op.create_table(
        "msg_event",
        sa.Column("event_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("nonce", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.String(length=16), nullable=False),
        sa.Column("event_type", sa.String(length=9), nullable=False),
        sa.Column("partition_key", sa.String(length=32), nullable=False),
        sa.Column("flid", sa.String(length=32), nullable=True),
        sa.Column("msg_id", sa.BigInteger(), nullable=False),
        sa.Column("state_version", sa.BigInteger(), nullable=True),
        sa.Column("operation_day", sa.Date(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.Column("redelivery_of", sa.BigInteger(), nullable=True),
        sa.Column("traceparent", sa.String(length=64), nullable=True),
        sa.Column("created_at", STAMP, nullable=False),
        sa.CheckConstraint(
            "event_type IN ('UPSERT', 'TOMBSTONE', 'NOTICE', 'REQUEST')", name="ck_event_type"
        ),
        sa.PrimaryKeyConstraint("event_id", name="pk_msg_event"),
    )
    op.create_index("ix_event_message", "msg_event", ["msg_id"], unique=False)


def _msg_event_state() -> None:
    op.create_table(
        "msg_event_state",
        sa.Column("event_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("target", sa.String(length=16), nullable=False),
        sa.Column("flid", sa.String(length=32), nullable=True),
        sa.Column("payload_bytes", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("superseded_by", sa.BigInteger(), nullable=True),
        sa.Column("redelivered_as", sa.BigInteger(), nullable=True),
        sa.Column("flush_id", sa.String(length=36), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", STAMP, nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("sent_at", STAMP, nullable=True),
        sa.Column("partition_", sa.Integer(), nullable=True),
        sa.Column("offset_", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(state = 'SENT' AND sent_at IS NOT NULL) OR (state <> 'SENT' AND sent_at IS NULL)",
            name="ck_event_sent",
        ),
        sa.CheckConstraint(
            "(state = 'SUPERSEDED' AND superseded_by IS NOT NULL) OR (state <> 'SUPERSEDED' "
            "AND superseded_by IS NULL)",
            name="ck_event_superseded",
        ),
        sa.CheckConstraint("state = 'PENDING' OR next_attempt_at IS NULL", name="ck_event_waiting"),
        sa.CheckConstraint(
            "state IN ('PENDING', 'SENT', 'SUPERSEDED', 'CANCELLED', 'DEAD')", name="ck_event_state"
        ),
        sa.PrimaryKeyConstraint("event_id", name="pk_msg_event_state"),
    )
    op.create_index(
        "ix_event_dead",
        "msg_event_state",
        ["flid", "target", "event_id"],
        unique=False,
        postgresql_where=sa.text("state = 'DEAD'"),
        sqlite_where=sa.text("state = 'DEAD'"),
    )
    op.create_index(
        "ix_event_pending",
        "msg_event_state",
        ["target", "event_id"],
        unique=False,
        postgresql_where=sa.text("state = 'PENDING'"),
        sqlite_where=sa.text("state = 'PENDING'"),
    )
    op.create_index(
        "ix_event_schd",
        "msg_event_state",
        ["flid", "target", "event_id"],
        unique=False,
        postgresql_where=sa.text("state = 'PENDING' AND target = 'KAFKA:schd'"),
        sqlite_where=sa.text("state = 'PENDING' AND target = 'KAFKA:schd'"),
    )
    op.create_index(
        "ix_event_waiting",
        "msg_event_state",
        ["target", "next_attempt_at"],
        unique=False,
        postgresql_where=sa.text("state = 'PENDING' AND next_attempt_at IS NOT NULL"),
        sqlite_where=sa.text("state = 'PENDING' AND next_attempt_at IS NOT NULL"),
    )


def _delivery_mark() -> None:
    op.create_table(
        "delivery_mark",
        sa.Column("target", sa.String(length=16), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("nonce", sa.BigInteger(), nullable=False),
        sa.Column("marked_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("target", name="pk_delivery_mark"),
    )


def _tune() -> None:
    """Every event leaves PENDING once: room, and vacuum before the partial indexes grow."""
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            "ALTER TABLE msg_event_state SET (fillfactor = 50, "
            "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, "
            "autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02, "
            "autovacuum_analyze_threshold = 2000)"
        )
