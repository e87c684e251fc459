"""Changes in the lives of disks are found by their slots. On the way down the events of outlooks go, which version 8
does not know.
"""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from predrain.data.store.migrations.rewriting import rewrite

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Write down beside each change where its disk stood."""
    op.add_column("life_changes", sa.Column("osds", sa.String, nullable=False, server_default=""))
    changes = sa.table("life_changes", *map(sa.column, ("number", "document", "osds")))
    rewrite(changes, ("number",), "document", _slots_of)


def downgrade() -> None:
    """Take away what version 8 does not know."""
    events = sa.table("cluster_events", sa.column("kind"))
    op.execute(events.delete().where(events.c.kind.like("outlook%")))
    op.drop_column("life_changes", "osds")


def _slots_of(row: Any) -> dict[str, Any] | None:
    try:
        osds = msgspec.json.decode(row.document, type=dict[str, Any]).get("osds", [])
    except msgspec.MsgspecError:
        return None  # the store tells of a change that cannot be read
    return {"osds": f",{','.join(map(str, osds))},"} if osds else None
