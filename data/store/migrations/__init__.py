"""How the store's tables and documents change from version to version, up and down, on every database.

Version n is alembic's revision `000n` in `versions/`. Stores of before version 3 do not say so in alembic's table but
in one of their own, `schema_version`. Nobody needs alembic's command: `predrain store migrate` does all.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Integer, column, inspect, select, table

MARK_OF_OLD = "schema_version"


def version_of(connection: Connection) -> int:
    """The version of the store in a database; 0 when it holds none."""
    if inspect(connection).has_table(MARK_OF_OLD):
        mark = select(column("version", Integer)).select_from(table(MARK_OF_OLD))
        return connection.execute(mark).scalar_one_or_none() or 0
    revision = MigrationContext.configure(connection).get_current_revision()
    return int(revision) if revision and revision.isdecimal() else 0


def migrate(connection: Connection, to: int) -> None:
    """Bring a store of a version that is known up or down to `to`, in the transaction in which `connection` is.

    In a database without a store (version 0) one is made; `to` 0 takes it away with all that it holds.
    """
    held = version_of(connection)
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    if inspect(connection).has_table(MARK_OF_OLD):
        command.stamp(config, _revision(held))
    (command.upgrade if to > held else command.downgrade)(config, _revision(to))


def _revision(version: int) -> str:
    return f"{version:04}" if version else "base"
