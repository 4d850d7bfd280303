"""Requests, reference data, leadership, the store's own record, audit."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

STAMP = (
    sa.DateTime()
    .with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
    .with_variant(sa.TIMESTAMP(), "oracle")
)


def upgrade() -> None:
    _req_track()
    _ref_master()
    _pipeline_lock()
    _leader_lease()
    _standby()
    _open_attempt()
    _store_info()
    _job_run()
    _operation_audit()
    _tune()
    _seed()


def _req_track() -> None:
    op.create_table(
        "req_track",
        sa.Column("request_id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=48), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("first_day", sa.Date(), nullable=True),
        sa.Column("last_day", sa.Date(), nullable=True),
        sa.Column("days_done", sa.Text(), nullable=True),
        sa.Column("rtype", sa.String(length=32), nullable=True),
        sa.Column("seqn", sa.String(length=32), nullable=True),
        sa.Column("requested_by", sa.String(length=200), nullable=False),
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
        sa.PrimaryKeyConstraint("request_id", name="pk_req_track"),
    )
    op.create_index("ix_req_kind", "req_track", ["kind", "state"], unique=False)


def _ref_master() -> None:
    op.create_table(
        "ref_master",
        sa.Column("rtype", sa.String(length=32), nullable=False),
        sa.Column("rkey", sa.String(length=200), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("last_message_id", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("rtype", "rkey", name="pk_ref_master"),
    )


def _pipeline_lock() -> None:
    op.create_table(
        "pipeline_lock",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=True),
        sa.Column("next_event_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_pipeline_lock"),
    )


def _leader_lease() -> None:
    op.create_table(
        "leader_lease",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=True),
        sa.Column("until_at", STAMP, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_leader_lease"),
    )


def _standby() -> None:
    op.create_table(
        "standby",
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("seen_at", STAMP, nullable=False),
        sa.Column("able", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_standby"),
    )


def _open_attempt() -> None:
    op.create_table(
        "open_attempt",
        sa.Column("name", sa.String(length=16), nullable=False),
        sa.Column("msg_id", sa.BigInteger(), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=True),
        sa.Column("opened_at", STAMP, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_open_attempt"),
    )


def _store_info() -> None:
    op.create_table(
        "store_info",
        sa.Column("name", sa.String(length=16), nullable=False),
        sa.Column("store_id", sa.String(length=36), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("identity_rule", sa.String(length=32), nullable=False),
        sa.CheckConstraint("generation >= 1", name="ck_store_generation"),
        sa.PrimaryKeyConstraint("name", name="pk_store_info"),
    )


def _job_run() -> None:
    op.create_table(
        "job_run",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("day", sa.Date(), nullable=True),
        sa.Column("started_at", STAMP, nullable=True),
        sa.Column("finished_at", STAMP, nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("kept_since", STAMP, nullable=True),
        sa.PrimaryKeyConstraint("job", name="pk_job_run"),
    )


def _operation_audit() -> None:
    op.create_table(
        "operation_audit",
        sa.Column("audit_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", STAMP, nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("act", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=True),
        sa.Column("reason", sa.String(length=2000), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("audit_id", name="pk_operation_audit"),
    )
    op.create_index("ix_audit_at", "operation_audit", ["at"], unique=False)


def _tune() -> None:
    """The lock rows are updated at every commit: keep their page pruned in place."""
    if op.get_context().dialect.name == "postgresql":
        for table in ("pipeline_lock", "leader_lease", "open_attempt"):
            op.execute(
                f"ALTER TABLE {table} SET (fillfactor = 20, autovacuum_vacuum_threshold = 500)"
            )


def _seed() -> None:
    """The rows that are locked rather than inserted, and which store this is."""
    given = op.get_context().config
    assert given is not None
    lock = sa.table(
        "pipeline_lock", sa.column("name"), sa.column("fence"), sa.column("next_event_id")
    )
    op.execute(lock.insert().values(name="LEADER", fence=0))
    op.execute(lock.insert().values(name="FLIGHT_SCHD_WRITER", next_event_id=1))
    lease = sa.table("leader_lease", sa.column("name"))
    op.execute(lease.insert().values(name="LEADER"))
    attempt = sa.table("open_attempt", sa.column("name"))
    op.execute(attempt.insert().values(name="PUMP"))
    cursor = sa.table(
        "inbox_cursor", sa.column("name"), sa.column("watermark"), sa.column("began_after")
    )
    op.execute(cursor.insert().values(name="CURSOR", watermark=0, began_after=0))
    store = sa.table(
        "store_info",
        sa.column("name"),
        sa.column("store_id"),
        sa.column("generation"),
        sa.column("identity_rule"),
    )
    op.execute(
        store.insert().values(
            name="STORE",
            store_id=given.attributes["store_id"],
            generation=1,
            identity_rule=given.attributes["identity_rule"],
        )
    )
