"""Version 4: the number of the transaction that wrote a row, for tables that data.store.change_feed follows; notes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_FOLLOWED = ("latest_readings", "latest_outlooks", "drains", "outcomes")


def upgrade() -> None:
    """Add the numbers and the notes. Existing rows count as known to every process."""
    for name in _FOLLOWED:
        op.add_column(name, sa.Column("written", sa.BigInteger, nullable=False, server_default="0"))
        op.create_index(f"{name}_by_writing", name, ["written"])
    op.create_table(
        "notes",
        sa.Column("room", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """Drop the numbers and the notes."""
    op.drop_table("notes")
    for name in _FOLLOWED:
        op.drop_index(f"{name}_by_writing", name)
        op.drop_column(name, "written")
