"""Checkpoints: what a device's readings came to, so that a start need not read them all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "checkpoints",
        sa.Column("device", sa.String, primary_key=True),
        sa.Column("layout", sa.String, nullable=False),
        sa.Column("through", sa.BigInteger, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )
    op.execute("UPDATE schema_version SET version = 2")


def downgrade() -> None:
    """Take it away: the next start reads the history instead."""
    op.drop_table("checkpoints")
    op.execute("UPDATE schema_version SET version = 1")
