"""Version 11: readings and outlooks are compressed with a dictionary, and only a device's newest outlook has its curve.

An upgrade changes no row. The documents of before stay as they are until retention thins and drops them; every form is
read (data.store.documents). So an upgrade takes no time and no space, and cannot be interrupted half-way.
"""

from __future__ import annotations

from predrain.data.store.documents import compress_document
from predrain.data.store.migrations.rewriting import repack_documents

revision = "0011"
down_revision = "0010"

_KEYS = {
    "readings": ("device", "taken_at"),
    "outlooks": ("device", "as_of"),
    "latest_readings": ("device",),
    "latest_outlooks": ("device",),
}


def upgrade() -> None:
    """Do nothing: the version alone keeps an older predrain away from documents that it cannot read."""


def downgrade() -> None:
    """Compress every document without a dictionary."""
    for name, keys in _KEYS.items():
        repack_documents(name, keys, compress_document)
