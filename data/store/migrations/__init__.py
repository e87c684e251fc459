"""Migrates the store's tables and documents from version to version, up and down, on every database.

Version n is alembic's revision `000n` in `versions/`. Stores from before version 3 record the version not in
alembic's table but in one of their own, `schema_version`. alembic's own command is not needed: `predrain store
migrate` does all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Integer, column, inspect, select, table

MARK_OF_OLD = "schema_version"


def version_of(connection: Connection) -> int:
    """Return the version of the store in a database; 0 if it holds none."""
    if inspect(connection).has_table(MARK_OF_OLD):
        mark = select(column("version", Integer)).select_from(table(MARK_OF_OLD))
        return connection.execute(mark).scalar_one_or_none() or 0
    revision = MigrationContext.configure(connection).get_current_revision()
    return _to_version(revision)


def migrate_store_version(
    connection: Connection, to: int, note: Callable[[int], None] = lambda _version: None
) -> None:
    """Migrate a store of a known version up or down to `to`, in the transaction in which `connection` is.

    In a database without a store (version 0) one is created; `to` 0 removes the store with all of its data.
    note: called with each version that the tables have reached.
    """
    held = version_of(connection)

    def note_step(step: Any, **_: Any) -> None:
        note(_to_version(next(iter(step.destination_revision_ids), None)))

    config = Config(attributes={"connection": connection, "note": note_step})
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    if inspect(connection).has_table(MARK_OF_OLD):
        command.stamp(config, _to_alembic_revision(held))
    (command.upgrade if to > held else command.downgrade)(config, _to_alembic_revision(to))


def _to_alembic_revision(version: int) -> str:
    return f"{version:04}" if version else "base"


def _to_version(revision: str | None) -> int:
    return int(revision) if revision and revision.isdecimal() else 0
