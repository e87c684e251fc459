"""Version 12: the survival curve of a device's newest outlook is bytes before the outlook's document.

An upgrade changes no row. A row of before keeps its form until the device's next outlook replaces it, and every form is
read (data.store.documents). So an upgrade takes no time and no space, and cannot be interrupted half-way.
"""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from predrain.data.store.documents import (
    NEWEST_DICTIONARY,
    compress_document,
    decompress_document,
    split_curve,
)
from predrain.data.store.migrations.rewriting import rewrite_table_rows

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Do nothing: the version alone keeps an older predrain away from documents that it cannot read."""


def downgrade() -> None:
    """Write every curve as digits into the document of its outlook."""
    table = sa.table("latest_outlooks", sa.column("device"), sa.column("document"))
    rewrite_table_rows(table, ("device",), "document", _write_digits)


def _write_digits(row: Any) -> dict[str, Any] | None:
    past, curve = split_curve(row.document)
    if curve is None:
        return None
    outlook = msgspec.json.decode(decompress_document(past), type=dict[str, Any])
    plain = msgspec.json.encode({**outlook, "survival": list(curve)})
    return {"document": compress_document(plain, NEWEST_DICTIONARY)}
