"""When a message was replayed, how often an order was begun, and what may be replayed."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STAMP = (
    sa.DateTime()
    .with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
    .with_variant(sa.TIMESTAMP(), "oracle")
)


def upgrade() -> None:
    for table in ("proc_state", "proc_state_hst"):
        op.add_column(table, sa.Column("replayed_at", STAMP, nullable=True))
    op.add_column(
        "replay_order", sa.Column("begun", sa.Integer(), nullable=False, server_default="0")
    )
    _partial("ix_replay_open", "replay_order", ["created_at"], "finished_at IS NULL")
    _partial("ix_proc_skipped", "proc_state", ["msg_id"], "state = 'SKIPPED'")


def _partial(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(
        name, table, columns, postgresql_where=sa.text(where), sqlite_where=sa.text(where)
    )
