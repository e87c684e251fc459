"""What every row of a table holds, made anew: for migrations that change values and not only columns."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from predrain.data.store.documents import unpacked

_PAGE = 5_000
_HISTORIES = (("readings", ("device", "taken_at")), ("outlooks", ("device", "as_of")), ("drains", ("id",)))
_NEWEST = ("latest_readings", "latest_outlooks")


def older_documents() -> None:
    """Write documents as releases up to version 4 read them: histories by zlib, what is newest of a device plain."""
    for name, keys in _HISTORIES:
        _repacked(name, keys, lambda plain: zlib.compress(plain, 1))
    for name in _NEWEST:
        _repacked(name, ("device",), bytes)


def _repacked(name: str, keys: Sequence[str], pack: Callable[[bytes], bytes]) -> None:
    def anew(row: Any) -> dict[str, Any]:
        return {"document": pack(unpacked(row.document))}

    rewrite(sa.table(name, *map(sa.column, (*keys, "document"))), keys, "document", anew)


def rewrite(
    table: sa.TableClause, keys: Sequence[str], source: str, anew: Callable[[Any], dict[str, Any] | None]
) -> None:
    """Set columns of every row to what `anew` makes of it, a page at a time."""
    connection = op.get_bind()
    for rows in pages(connection, table, keys, source):
        made = [(row, values) for row in rows if (values := anew(row)) is not None]
        if not made:
            continue
        update = (
            table.update()
            .where(*(table.c[key] == sa.bindparam(f"key_{key}") for key in keys))
            .values({name: sa.bindparam(f"new_{name}") for name in made[0][1]})
        )
        connection.execute(
            update,
            [
                {f"key_{key}": getattr(row, key) for key in keys}
                | {f"new_{name}": value for name, value in values.items()}
                for row, values in made
            ],
        )


def pages(
    connection: sa.Connection, table: sa.TableClause, keys: Sequence[str], source: str
) -> Iterator[Sequence[Any]]:
    columns = [table.c[key] for key in keys]
    page = sa.select(*columns, table.c[source]).order_by(*columns).limit(_PAGE)
    after: tuple[Any, ...] | None = None
    while True:
        further = (
            page if after is None else page.where(sa.tuple_(*columns) > sa.tuple_(*map(sa.literal, after)))
        )
        rows = connection.execute(further).all()
        if not rows:
            return
        yield rows
        after = tuple(getattr(rows[-1], key) for key in keys)
