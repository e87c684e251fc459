"""Imports the rows of a query on any database that SQLAlchemy reaches: read only, streamed by a server-side cursor."""

from __future__ import annotations

import difflib
import re
from collections.abc import Generator, Iterator, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from predrain.data.ids import HostName
from predrain.data.importing.import_port import ImportPart, Item, UnusableItem
from predrain.data.importing.import_rows import COLUMNS, SMART_COLUMN, NoReading, TableColumns
from predrain.data.refusal import Refusal

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

ROWS_AT_ONCE = 1_000
_READS = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*\(*\s*(?:select|with|values|table)\b", re.IGNORECASE | re.DOTALL
)


class BadMapping(Refusal):
    """Columns are not mapped as `name=column,...`, or to names that a reading does not have."""


class BadQuery(Refusal):
    """The database cannot be reached, or does not answer this query."""


def parse_column_mapping(said: str) -> dict[str, str]:
    """Parse `device=serial,taken_at=ts` into {"device": "serial", ..}. Raises BadMapping."""
    found: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in said.split(","))):
        name, equals, column = (word.strip() for word in pair.partition("="))
        if not equals or not column:
            raise BadMapping(f"--columns has {pair!r}; write name=column, such as taken_at=ts")
        if name not in COLUMNS and not SMART_COLUMN.fullmatch(name):
            near = difflib.get_close_matches(name, COLUMNS, 1)
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(COLUMNS)}, smart_N_raw"
            raise BadMapping(f"--columns: a reading has no {name}; {meant}")
        if name in found:
            raise BadMapping(f"--columns names {name} twice; leave one out")
        found[name] = column
    if "taken_at" not in found or not ("device" in found or {"model", "serial"} <= set(found)):
        raise BadMapping("--columns needs taken_at, and device or both model and serial")
    return found


def build_query_import_part(
    url: str, query: str, columns: Mapping[str, str], host: HostName, zone: tzinfo | None
) -> ImportPart:
    """Build the part with the query's rows. They have no fixed order, so all are read again every time.

    Raises BadQuery.
    """
    import sqlalchemy
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    if not _READS.match(query):
        raise BadQuery("the query must only read: begin it with SELECT or WITH")
    try:
        parsed = sqlalchemy.make_url(url)
    except ArgumentError:
        raise BadQuery(
            "--url is no SQLAlchemy address; write one like postgresql+psycopg://user@host/base"
        ) from None
    shown = parsed.render_as_string(hide_password=True)

    def items(skip: int) -> Generator[Item]:  # noqa: ARG001  (see the docstring)
        try:
            yield from _stream_query_rows(_create_source_engine(parsed), query, columns, host, zone)
        except (SQLAlchemyError, ImportError) as error:
            said = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise BadQuery(f"{shown} does not answer the query ({said}); check --url and --query") from None

    return ImportPart(shown, None, items)


def _create_source_engine(url: URL) -> Engine:
    import sqlalchemy
    from sqlalchemy.pool import NullPool

    if url.get_backend_name() == "sqlite":
        if not url.database or not Path(url.database).is_file():
            raise BadQuery(f"there is no file {url.database}; check --url")
        return sqlalchemy.create_engine(
            f"sqlite:///file:{Path(url.database).resolve()}?mode=ro&uri=true", poolclass=NullPool
        )
    return sqlalchemy.create_engine(url, poolclass=NullPool)


def _stream_query_rows(
    engine: Engine, query: str, columns: Mapping[str, str], host: HostName, zone: tzinfo | None
) -> Iterator[Item]:
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection = connection.execution_options(postgresql_readonly=True)
        elif engine.dialect.name in ("mysql", "mariadb"):
            connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
        streamed = connection.execution_options(stream_results=True, yield_per=ROWS_AT_ONCE)
        # text() is not used: a colon in the query is no parameter.
        result = streamed.exec_driver_sql(
            query.replace("%", "%%") if _has_percent_parameters(engine) else query
        )
        places = {name: place for place, name in enumerate(result.keys())}
        missing = sorted(column for column in columns.values() if column not in places)
        if missing:
            raise BadMapping(
                f"the query answers no column {', '.join(missing)}; it has {', '.join(list(places)[:40])}"
            )
        shape = TableColumns({name: places[column] for name, column in columns.items()}, host, zone)
        for number, row in enumerate(result, start=1):
            try:
                yield shape.parse_row(tuple(row))
            except NoReading as reason:
                yield UnusableItem(f"row {number}", str(reason))


def _has_percent_parameters(engine: Engine) -> bool:
    """Return whether the driver reads a percent sign as a parameter."""
    return engine.dialect.paramstyle in ("format", "pyformat")
