"""Version 6: the audit becomes a chain. Every existing line is chained as it is, the oldest first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_AUDIT = "audit"
_PAGE = 2_000

_journal = sa.table("journal", *map(sa.column, ("number", "drain", "document", "hash")))
_chains = sa.table("chains", *map(sa.column, ("journal", "anchor", "anchored", "head", "ended", "adopted")))


def upgrade() -> None:
    """Chain the existing lines, and store the number of the last of them."""
    op.add_column("journal", sa.Column("hash", sa.LargeBinary))
    op.create_table(
        "chains",
        sa.Column("journal", sa.String, primary_key=True),
        sa.Column("anchor", sa.LargeBinary, nullable=False),
        sa.Column("anchored", sa.BigInteger, nullable=False),
        sa.Column("head", sa.LargeBinary, nullable=False),
        sa.Column("ended", sa.BigInteger, nullable=False),
        sa.Column("adopted", sa.BigInteger, nullable=False),
    )
    connection, head, number = op.get_bind(), bytes(32), 0
    update = (
        _journal.update()
        .where(_journal.c.number == sa.bindparam("of"))
        .values(hash=sa.bindparam("made", type_=sa.LargeBinary))
    )
    for rows in _read_audit_pages(connection):
        made = []
        for row in rows:
            head, number = hashlib.sha256(head + bytes(row.document)).digest(), row.number
            made.append({"of": number, "made": head})
        connection.execute(update, made)
    if number:
        ends = {
            "journal": _AUDIT,
            "anchor": bytes(32),
            "anchored": 0,
            "head": head,
            "ended": number,
            "adopted": number,
        }
        connection.execute(_chains.insert(), [ends])


def downgrade() -> None:
    """Drop the chain; the lines stay."""
    op.drop_table("chains")
    op.drop_column("journal", "hash")


def _read_audit_pages(connection: sa.Connection) -> Iterator[Sequence[Any]]:
    page = (
        sa.select(_journal.c.number, _journal.c.document)
        .where(_journal.c.drain == _AUDIT)
        .order_by(_journal.c.number)
        .limit(_PAGE)
    )
    after = 0
    while rows := connection.execute(page.where(_journal.c.number > after)).all():
        yield rows
        after = rows[-1].number
