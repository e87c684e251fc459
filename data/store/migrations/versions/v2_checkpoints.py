"""Version 2: checkpoints, the state after a device's readings, so that a start need not read them all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table of checkpoints."""
    op.create_table(
        "checkpoints",
        sa.Column("device", sa.String, primary_key=True),
        sa.Column("layout", sa.String, nullable=False),
        sa.Column("through", sa.BigInteger, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )
    op.execute("UPDATE schema_version SET version = 2")


def downgrade() -> None:
    """Drop the table: the next start reads the history instead."""
    op.drop_table("checkpoints")
    op.execute("UPDATE schema_version SET version = 1")
