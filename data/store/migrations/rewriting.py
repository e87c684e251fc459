"""Rewrites every row of a table, for migrations that change values and not only columns."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from predrain.data.store.documents import decompress_document

_PAGE = 5_000
_HISTORIES = (("readings", ("device", "taken_at")), ("outlooks", ("device", "as_of")), ("drains", ("id",)))
_NEWEST = ("latest_readings", "latest_outlooks")


def older_documents() -> None:
    """Write documents as releases up to version 4 read them: histories by zlib, a device's newest rows plain."""
    for name, keys in _HISTORIES:
        repack_documents(name, keys, lambda plain: zlib.compress(plain, 1))
    for name in _NEWEST:
        repack_documents(name, ("device",), bytes)


def repack_documents(name: str, keys: Sequence[str], pack: Callable[[bytes], bytes]) -> None:
    """Compress the documents of every row of a table by `pack`."""

    def anew(row: Any) -> dict[str, Any]:
        return {"document": pack(decompress_document(row.document))}

    rewrite_table_rows(sa.table(name, *map(sa.column, (*keys, "document"))), keys, "document", anew)


def rewrite_table_rows(
    table: sa.TableClause, keys: Sequence[str], source: str, anew: Callable[[Any], dict[str, Any] | None]
) -> None:
    """Set columns of every row to the values that `anew` returns for it, one page at a time."""
    connection = op.get_bind()
    for rows in read_table_pages(connection, table, keys, source):
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


def read_table_pages(
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
