"""Flights with their details, provenance and history; the view for people."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STAMP = (
    sa.DateTime()
    .with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
    .with_variant(sa.TIMESTAMP(), "oracle")
)


def upgrade() -> None:
    _flight_schd()
    _flight_gate()
    _flight_checkin()
    _flight_belt()
    _flight_stand_plan()
    _flight_chute()
    _flight_delay()
    _flight_bridge_op()
    _flight_chock_op()
    _flight_route_point()
    _flight_change()
    _flight_last_version()
    _flight_hst()
    _plan_day()
    _schd_snap_log()
    _tune()
    op.execute(DISPLAY)


def _flight_schd() -> None:
    op.create_table(
        "flight_schd",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("flno", sa.Text(), nullable=True),
        sa.Column("alcd", sa.Text(), nullable=True),
        sa.Column("mvtp", sa.Text(), nullable=True),
        sa.Column("sctm", sa.Text(), nullable=True),
        sa.Column("flty", sa.Text(), nullable=True),
        sa.Column("shar", sa.Text(), nullable=True),
        sa.Column("estm", sa.Text(), nullable=True),
        sa.Column("actm", sa.Text(), nullable=True),
        sa.Column("cncl", sa.Text(), nullable=True),
        sa.Column("brdo", sa.Text(), nullable=True),
        sa.Column("lstc", sa.Text(), nullable=True),
        sa.Column("brdc", sa.Text(), nullable=True),
        sa.Column("stnd", sa.Text(), nullable=True),
        sa.Column("acrg", sa.Text(), nullable=True),
        sa.Column("actp", sa.Text(), nullable=True),
        sa.Column("term", sa.Text(), nullable=True),
        sa.Column("stat", sa.Text(), nullable=True),
        sa.Column("rmrk", sa.Text(), nullable=True),
        sa.Column("link", sa.Text(), nullable=True),
        sa.Column("fdiv_dest", sa.Text(), nullable=True),
        sa.Column("fdiv_rson", sa.Text(), nullable=True),
        sa.Column("fdiv_text", sa.Text(), nullable=True),
        sa.Column("fret_rson", sa.Text(), nullable=True),
        sa.Column("fret_text", sa.Text(), nullable=True),
        sa.Column("flab_rson", sa.Text(), nullable=True),
        sa.Column("flab_text", sa.Text(), nullable=True),
        sa.Column("srvt_text", sa.Text(), nullable=True),
        sa.Column("vipf_text", sa.Text(), nullable=True),
        sa.Column("mafl_text", sa.Text(), nullable=True),
        sa.Column("operation_day", sa.Date(), nullable=True),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.Column("state_version", sa.BigInteger(), nullable=False),
        sa.Column("last_message_id", sa.BigInteger(), nullable=False),
        sa.Column("empty_groups", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("created_at", STAMP, nullable=False),
        sa.Column("updated_at", STAMP, nullable=False),
        sa.CheckConstraint("status IN ('ACTIVE', 'DELETED')", name="ck_flight_status"),
        sa.PrimaryKeyConstraint("flid", name="pk_flight_schd"),
    )
    op.create_index("ix_flight_day", "flight_schd", ["operation_day", "flid"], unique=False)


def _flight_gate() -> None:
    op.create_table(
        "flight_gate",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_seq", sa.Text(), nullable=True),
        sa.Column("gate", sa.Text(), nullable=True),
        sa.Column("gotm", sa.Text(), nullable=True),
        sa.Column("gctm", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("record_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "ordinal", name="pk_flight_gate"),
    )


def _flight_checkin() -> None:
    op.create_table(
        "flight_checkin",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_seq", sa.Text(), nullable=True),
        sa.Column("cntr", sa.Text(), nullable=True),
        sa.Column("cotm", sa.Text(), nullable=True),
        sa.Column("cctm", sa.Text(), nullable=True),
        sa.Column("ccls", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("record_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "ordinal", name="pk_flight_checkin"),
    )


def _flight_belt() -> None:
    op.create_table(
        "flight_belt",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_seq", sa.Text(), nullable=True),
        sa.Column("belt", sa.Text(), nullable=True),
        sa.Column("pcot", sa.Text(), nullable=True),
        sa.Column("pcct", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("record_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "ordinal", name="pk_flight_belt"),
    )


def _flight_stand_plan() -> None:
    op.create_table(
        "flight_stand_plan",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_seq", sa.Text(), nullable=True),
        sa.Column("stnd", sa.Text(), nullable=True),
        sa.Column("sstm", sa.Text(), nullable=True),
        sa.Column("setm", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("record_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "ordinal", name="pk_flight_stand_plan"),
    )


def _flight_chute() -> None:
    op.create_table(
        "flight_chute",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_seq", sa.Text(), nullable=True),
        sa.Column("chut", sa.Text(), nullable=True),
        sa.Column("hotm", sa.Text(), nullable=True),
        sa.Column("hctm", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("record_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "ordinal", name="pk_flight_chute"),
    )


def _flight_delay() -> None:
    op.create_table(
        "flight_delay",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_seq", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("dura", sa.Text(), nullable=True),
        sa.Column("text_", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("record_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "ordinal", name="pk_flight_delay"),
    )


def _flight_bridge_op() -> None:
    op.create_table(
        "flight_bridge_op",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_seq", sa.Text(), nullable=True),
        sa.Column("brdg", sa.Text(), nullable=True),
        sa.Column("batm", sa.Text(), nullable=True),
        sa.Column("bdtm", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("record_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "ordinal", name="pk_flight_bridge_op"),
    )


def _flight_chock_op() -> None:
    op.create_table(
        "flight_chock_op",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_seq", sa.Text(), nullable=True),
        sa.Column("stnd", sa.Text(), nullable=True),
        sa.Column("cntm", sa.Text(), nullable=True),
        sa.Column("cftm", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("record_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "ordinal", name="pk_flight_chock_op"),
    )


def _flight_route_point() -> None:
    op.create_table(
        "flight_route_point",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("route_kind", sa.String(length=4), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_seq", sa.Text(), nullable=True),
        sa.Column("stop", sa.Text(), nullable=True),
        sa.Column("artm", sa.Text(), nullable=True),
        sa.Column("dptm", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("record_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "route_kind", "ordinal", name="pk_flight_route_point"),
    )


def _flight_change() -> None:
    op.create_table(
        "flight_change",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("state_version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("msg_id", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", STAMP, nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("flid", "state_version", name="pk_flight_change"),
    )
    op.create_index("ix_change_message", "flight_change", ["msg_id"], unique=False)


def _flight_last_version() -> None:
    op.create_table(
        "flight_last_version",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("state_version", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("flid", name="pk_flight_last_version"),
    )


def _flight_hst() -> None:
    op.create_table(
        "flight_hst",
        sa.Column("flid", sa.String(length=32), nullable=False),
        sa.Column("state_version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("operation_day", sa.Date(), nullable=True),
        sa.Column("flight", sa.Text(), nullable=False),
        sa.Column("written_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("flid", "state_version", name="pk_flight_hst"),
    )
    op.create_index("ix_flight_hst_day", "flight_hst", ["operation_day", "flid"], unique=False)


def _plan_day() -> None:
    op.create_table(
        "plan_day",
        sa.Column("operation_day", sa.Date(), nullable=False),
        sa.Column("sent_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("operation_day", name="pk_plan_day"),
    )


def _schd_snap_log() -> None:
    op.create_table(
        "schd_snap_log",
        sa.Column("msg_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("received_at", STAMP, nullable=False),
        sa.Column("kind", sa.String(length=65), nullable=False),
        sa.Column("scope_start", sa.Date(), nullable=True),
        sa.Column("scope_end", sa.Date(), nullable=True),
        sa.Column("flights", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("msg_id", name="pk_schd_snap_log"),
    )
    op.create_index(
        "ix_schd_snap_scope", "schd_snap_log", ["scope_end", "received_at"], unique=False
    )


DETAILS = (
    "flight_gate",
    "flight_checkin",
    "flight_belt",
    "flight_stand_plan",
    "flight_chute",
    "flight_delay",
    "flight_bridge_op",
    "flight_chock_op",
    "flight_route_point",
)


def _tune() -> None:
    """Flights are updated in place and their groups rewritten: room and eager vacuum."""
    if op.get_context().dialect.name == "postgresql":
        for table in ("flight_schd", *DETAILS):
            op.execute(
                f"ALTER TABLE {table} SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, "
                "autovacuum_vacuum_cost_delay = 0)"
            )


DISPLAY = """
CREATE VIEW flight_schd_display AS
SELECT f.flid, f.operation_day, f.status, f.flno, f.mvtp, f.sctm, f.estm, f.actm, f.cncl, f.stat,
    f.stnd,
    (SELECT d.gate FROM flight_gate d WHERE d.flid = f.flid AND d.ordinal = 1) AS gate_1,
    (SELECT d.gate FROM flight_gate d WHERE d.flid = f.flid AND d.ordinal = 2) AS gate_2,
    (SELECT COUNT(*) FROM flight_gate d WHERE d.flid = f.flid) AS gates,
    (SELECT d.cntr FROM flight_checkin d WHERE d.flid = f.flid AND d.ordinal = 1) AS counter_1,
    (SELECT d.cntr FROM flight_checkin d WHERE d.flid = f.flid AND d.ordinal = 2) AS counter_2,
    (SELECT COUNT(*) FROM flight_checkin d WHERE d.flid = f.flid) AS counters,
    (SELECT d.belt FROM flight_belt d WHERE d.flid = f.flid AND d.ordinal = 1) AS belt_1,
    (SELECT COUNT(*) FROM flight_belt d WHERE d.flid = f.flid) AS belts,
    (SELECT d.code FROM flight_delay d WHERE d.flid = f.flid AND d.ordinal = 1) AS delay_code_1,
    (SELECT d.dura FROM flight_delay d WHERE d.flid = f.flid AND d.ordinal = 1) AS delay_1,
    (SELECT COUNT(*) FROM flight_delay d WHERE d.flid = f.flid) AS delays,
    f.state_version, f.last_message_id, f.updated_at
FROM flight_schd f
"""
