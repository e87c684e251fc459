"""Version 1: the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBERED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables."""
    _create_document_table("readings", "taken_at")
    _create_latest_table("latest_readings", "taken_at")
    op.create_table(
        "latency",
        sa.Column("osd", sa.Integer, primary_key=True),
        sa.Column("window_start", sa.BigInteger, primary_key=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
    _create_document_table("outlooks", "as_of")
    _create_latest_table("latest_outlooks", "as_of")
    op.create_table(
        "drains",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
    op.create_index("drains_by_creation", "drains", ["created_at", "id"])
    _create_statement_table("journal", sa.Column("drain", sa.String, nullable=False))
    op.create_index("journal_by_drain", "journal", ["drain", "number"])
    _create_statement_table("outcomes", sa.Column("at", sa.BigInteger, nullable=False))
    op.create_index("outcomes_by_time", "outcomes", ["at", "number"])
    op.create_table(
        "halt",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("why", sa.Text, nullable=False),
    )
    mark = op.create_table(
        "schema_version",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer, nullable=False),
    )
    op.bulk_insert(mark, [{"id": 1, "version": 1}])


def downgrade() -> None:
    """Drop the tables, with all of their data."""
    for name in (
        *("readings", "latest_readings", "latency", "outlooks", "latest_outlooks", "drains", "journal"),
        *("outcomes", "halt", "schema_version"),
    ):
        op.drop_table(name)


def _create_document_table(name: str, time: str) -> None:
    op.create_table(
        name,
        sa.Column("device", sa.String, primary_key=True),
        sa.Column(time, sa.BigInteger, primary_key=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )


def _create_latest_table(name: str, time: str) -> None:
    op.create_table(
        name,
        sa.Column("device", sa.String, primary_key=True),
        sa.Column(time, sa.BigInteger, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )


def _create_statement_table(name: str, about: sa.Column[object]) -> None:
    op.create_table(
        name,
        sa.Column("number", _NUMBERED, primary_key=True, autoincrement=True),
        about,
        sa.Column("digest", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sqlite_autoincrement=True,
    )
