"""Version 7: a table for changes in the lives of disks. A downgrade removes the held severity from outlooks."""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from predrain.data.store.documents import compress_document, decompress_document
from predrain.data.store.migrations.rewriting import rewrite_table_rows

revision = "0007"
down_revision = "0006"

_NUMBERED = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_OUTLOOKS = (("outlooks", ("device", "as_of")), ("latest_outlooks", ("device",)))
_HELD = b'"held"'


def upgrade() -> None:
    """Create the table; the service fills it from the present state of its disks."""
    op.create_table(
        "life_changes",
        sa.Column("number", _NUMBERED, primary_key=True, autoincrement=True),
        sa.Column("device", sa.String, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("life_changes_by_device", "life_changes", ["device", "number"])
    op.create_index("life_changes_by_time", "life_changes", ["at", "number"])


def downgrade() -> None:
    """Drop the table, and the field that version 6 would refuse."""
    for name, keys in _OUTLOOKS:
        rewrite_table_rows(
            sa.table(name, *map(sa.column, (*keys, "document"))), keys, "document", _without_held
        )
    op.drop_table("life_changes")


def _without_held(row: Any) -> dict[str, Any] | None:
    plain = decompress_document(row.document)
    if _HELD not in plain:
        return None
    outlook = msgspec.json.decode(plain)
    outlook.pop("held", None)
    return {"document": compress_document(msgspec.json.encode(outlook))}
