"""Version 9: changes in the lives of disks are found by their slots.

A downgrade drops the events of outlooks, which version 8 does not know.
"""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from predrain.data.store.migrations.rewriting import rewrite_table_rows

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Write the slots of the disk beside each change."""
    op.add_column("life_changes", sa.Column("osds", sa.String, nullable=False, server_default=""))
    changes = sa.table("life_changes", *map(sa.column, ("number", "document", "osds")))
    rewrite_table_rows(changes, ("number",), "document", _slots_of)


def downgrade() -> None:
    """Drop the rows and the column that version 8 does not know."""
    events = sa.table("cluster_events", sa.column("kind"))
    op.execute(events.delete().where(events.c.kind.like("outlook%")))
    op.drop_column("life_changes", "osds")


def _slots_of(row: Any) -> dict[str, Any] | None:
    try:
        osds = msgspec.json.decode(row.document, type=dict[str, Any]).get("osds", [])
    except msgspec.MsgspecError:
        return None  # the store reports a change that cannot be read
    return {"osds": f",{','.join(map(str, osds))},"} if osds else None
