"""Requests to the AODB, and the counter of their SEQN.

Until now nothing was ever written to req_track, so it is made anew rather than altered.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STAMP = (
    sa.DateTime()
    .with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
    .with_variant(sa.TIMESTAMP(), "oracle")
)


def upgrade() -> None:
    op.drop_table("req_track")
    op.create_table(
        "req_track",
        sa.Column("request_id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=48), nullable=False),
        sa.Column("open_kind", sa.String(length=48), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("first_day", sa.Date(), nullable=True),
        sa.Column("last_day", sa.Date(), nullable=True),
        sa.Column("days_done", sa.Text(), nullable=True),
        sa.Column("rtype", sa.String(length=32), nullable=True),
        sa.Column("seqn", sa.String(length=32), nullable=False),
        sa.Column("requested_by", sa.String(length=200), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("sends", sa.Integer(), nullable=False),
        sa.Column("resent", sa.Integer(), nullable=False),
        sa.Column("outbound_after", sa.BigInteger(), nullable=True),
        sa.Column("outbound_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", STAMP, nullable=False),
        sa.Column("send_started_at", STAMP, nullable=True),
        sa.Column("sent_at", STAMP, nullable=True),
        sa.Column("finished_at", STAMP, nullable=True),
        sa.Column("answer_msg_id", sa.BigInteger(), nullable=True),
        sa.Column("matched_by", sa.String(length=16), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('REGISTERED', 'SENDING', 'SENT', 'DONE', 'EXPIRED', 'FAILED')",
            name="ck_req_state",
        ),
        sa.CheckConstraint(
            "(state IN ('REGISTERED', 'SENDING', 'SENT') AND open_kind = kind "
            "AND finished_at IS NULL) OR (state IN ('DONE', 'EXPIRED', 'FAILED') "
            "AND open_kind IS NULL AND finished_at IS NOT NULL)",
            name="ck_req_open",
        ),
        sa.CheckConstraint(
            "state <> 'SENDING' OR send_started_at IS NOT NULL", name="ck_req_sending"
        ),
        sa.CheckConstraint("state <> 'SENT' OR sent_at IS NOT NULL", name="ck_req_sent"),
        sa.PrimaryKeyConstraint("request_id", name="pk_req_track"),
        sa.UniqueConstraint("open_kind", name="uq_req_open_kind"),
    )
    op.create_index("ix_req_created", "req_track", ["created_at"], unique=False)
    op.add_column("pipeline_lock", sa.Column("next_seqn", sa.BigInteger(), nullable=True))
    lock = sa.table("pipeline_lock", sa.column("name"), sa.column("next_seqn"))
    op.execute(lock.update().where(lock.c.name == "FLIGHT_SCHD_WRITER").values(next_seqn=1))
