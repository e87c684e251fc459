"""Version 8: a table for events of the cluster.

The table begins with two events for each stored drain: when it was requested, and its present state.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from predrain.data.store.documents import decompress_document
from predrain.data.store.migrations.rewriting import read_table_pages
from predrain.data.store.store_schema import to_microseconds
from predrain.data.wire.strict_json import InvalidValue

revision = "0008"
down_revision = "0007"

_NUMBERED = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_COLUMNS = ("subject", "place", "kind", "at", "document")


def upgrade() -> None:
    """Create the table, and write the events of the stored drains into it."""
    op.create_table(
        "cluster_events",
        sa.Column("number", _NUMBERED, primary_key=True, autoincrement=True),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("subject", "place", name="cluster_events_by_subject"),
        sqlite_autoincrement=True,
    )
    op.create_index("cluster_events_by_time", "cluster_events", ["at", "number"])
    drains, connection = sa.table("drains", sa.column("id"), sa.column("document")), op.get_bind()
    table = sa.table("cluster_events", *map(sa.column, _COLUMNS))
    for page in read_table_pages(connection, drains, ("id",), "document"):
        rows = [row for drain in page for row in _rows_of(drain)]
        if rows:
            connection.execute(table.insert(), rows)


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("cluster_events")


def _rows_of(row: Any) -> Iterator[dict[str, object]]:
    try:
        drain = msgspec.json.decode(decompress_document(row.document), type=dict[str, Any])
        told = {
            "subject": drain["id"], "kind": "drain", "osds": drain["osds"], "device": drain.get("device"),
            "intent": drain["intent"],
        }  # fmt: skip
        asked = {
            "state": "proposed",
            "why": drain["reason"],
            "by": drain["asked_by"],
            "at": drain["created_at"],
        }
        events = [told | asked]
        if drain["state"] != "proposed":
            ended = {"why": drain.get("ended_why", ""), "by": drain.get("cancelled_by", "")}
            events.append(told | ended | {"state": drain["state"], "at": drain["updated_at"]})
        times = [to_microseconds(msgspec.convert(event["at"], datetime)) for event in events]
    except (InvalidValue, msgspec.MsgspecError, KeyError, TypeError):
        return  # the store reports a drain that cannot be read
    for place, (event, at) in enumerate(zip(events, times, strict=True), 1):
        document = msgspec.json.encode(event)
        yield {"subject": drain["id"], "place": place, "kind": "drain", "at": at, "document": document}
