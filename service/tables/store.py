"""`[store]`: where history is kept."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class StoreTable(BaseModel):
    """`[store]`: the database; without one a SQLite file in the state directory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL database of the store, `postgresql://USER@HOST:PORT/DATABASE`, made ready by `predrain "
        "store migrate`; its password belongs in `~/.pgpass` or PGPASSFILE. A file in the state directory when it is "
        "not set.",
    )
