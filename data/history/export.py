"""Stored readings as Backblaze-shaped parquet on any file system: what training reads, out of what a service kept.

One file a month, `month=YYYY-MM/part.parquet`, with a row for a drive's daily value: `date, serial_number, model,
capacity_bytes, failure, smart_N_raw, smart_N_normalized`. A file is there whole or not at all; one that has all that
the store has of its month is left alone, so that an export that was stopped goes on, and one that is run daily costs
the last month. Rows that the store no longer has stay in their file. `failure` is 1 on the last day up to that on
which a drive was said to have died.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from predrain.data.ids import DeviceId
from predrain.data.outcome import Fate, Outcome
from predrain.data.reading import Reading, Smart
from predrain.data.refusal import Refusal
from predrain.data.store.port import Store

if TYPE_CHECKING:
    import pyarrow as pa

DEATHS: Final = frozenset({Fate.FAILED, Fate.CONFIRMED})
VERDICTS: Final = DEATHS | {Fate.CLEARED}
MADE_OF: Final = b"predrain.made_of"
PIECE: Final = 5_000
"""Rows that are turned into columns at once: as dicts they take ten times the room."""
FORM: Final = "1"
"""Of the files; a new one makes every file anew."""


class ExportFailed(Refusal):
    """The place cannot be written, or holds a file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Month:
    """A file that was looked at. rows: in it; None: it had everything already."""

    path: str
    rows: int | None


def export(
    store: Store, url: str, values: Callable[[Smart], Mapping[int, float]], *, through: date
) -> Iterator[Month]:
    """Write every month up to the day `through` whose file is not there or lacks something; oldest first.

    url: a folder as fsspec names it. values: SMART id -> believable decoded count, as the features take it. Raises
    ExportFailed, and what the store raises.
    """
    files, folder = _folder(url)
    marks: dict[date, list[tuple[date, int]]] = defaultdict(list)
    for day, mark in store.days().items():
        if day <= through:
            marks[day.replace(day=1)].append((day, mark))
    died = _deaths(store)
    for month, days in sorted(marks.items()):
        last = min((month + timedelta(days=31)).replace(day=1) - timedelta(days=1), through)
        path = f"{folder}/month={month:%Y-%m}/part.parquet"
        dead = {device: day for device, day in died.items() if month <= day <= last}
        made_of = _digest(days, dead)
        before = _read(files, path)
        if before is not None and (before.schema.metadata or {}).get(MADE_OF) == made_of:
            yield Month(path, None)
            continue
        table = _table(store.daily(month, last), dead, values, before)
        _write(files, path, table.replace_schema_metadata({MADE_OF: made_of}))
        yield Month(path, table.num_rows)


def _folder(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    try:
        files, folder = url_to_fs(url)
    except (OSError, ValueError, ImportError) as error:
        raise ExportFailed(
            f"{url} cannot be opened ({error}); name a folder, and see that what its kind of URL needs is installed"
        ) from error
    return files, str(folder).rstrip("/")


def _deaths(store: Store) -> dict[DeviceId, date]:
    """The day of the last daily value of each dead drive up to that on which it was said to have died."""
    said: dict[DeviceId, Outcome] = {one.device: one for one in store.outcomes() if one.fate in VERDICTS}
    died = {}
    for device, outcome in said.items():
        if outcome.fate in DEATHS:
            day = outcome.at.astimezone(UTC).date()
            heard = [_day(one) for one in store.readings(device) if isinstance(one.seen, Smart)]
            if upto := [one for one in heard if one <= day]:
                died[device] = upto[-1]
    return died


def _digest(days: list[tuple[date, int]], dead: Mapping[DeviceId, date]) -> bytes:
    told = repr((FORM, sorted(days), sorted(dead.items())))
    return hashlib.sha256(told.encode()).hexdigest().encode()


def _table(
    readings: Iterator[Reading],
    dead: Mapping[DeviceId, date],
    values: Callable[[Smart], Mapping[int, float]],
    before: pa.Table | None,
) -> pa.Table:
    """The month's rows by drive and day: those of `readings`, and those of `before` that they lack."""
    import pyarrow as pa

    rows = (_row(one, one.seen, values, dead) for one in readings if isinstance(one.seen, Smart))
    pieces = [pa.Table.from_pylist([], schema=_schema(()))]
    while piece := list(islice(rows, PIECE)):
        pieces.append(pa.Table.from_pylist(piece, schema=_schema({name for row in piece for name in row})))
    table = pa.concat_tables(pieces, promote_options="default")
    if before is not None:
        known = set(_keys(table))
        lacking = pa.array([key not in known for key in _keys(before)], pa.bool_())
        table = pa.concat_tables([table, before.filter(lacking)], promote_options="default")
    ordered = table.sort_by([("serial_number", "ascending"), ("date", "ascending")])
    return ordered.select(_schema(ordered.column_names).names)


def _schema(names: Iterable[str]) -> pa.Schema:
    """The columns that every file has, then SMART's of `names` by number."""
    import pyarrow as pa

    smart = sorted({name for name in names if name.startswith("smart_")}, key=_number)
    return pa.schema(
        [
            ("date", pa.date32()),
            ("serial_number", pa.string()),
            ("model", pa.string()),
            ("capacity_bytes", pa.int64()),
            ("failure", pa.int8()),
            *((name, pa.float64() if name.endswith("raw") else pa.int64()) for name in smart),
        ]
    )


def _keys(table: pa.Table) -> Iterator[tuple[str, date]]:
    return zip(table["serial_number"].to_pylist(), table["date"].to_pylist(), strict=True)


def _row(
    reading: Reading,
    smart: Smart,
    values: Callable[[Smart], Mapping[int, float]],
    dead: Mapping[DeviceId, date],
) -> dict[str, Any]:
    identity = smart.identity
    row = {
        "date": _day(reading),
        "serial_number": identity.serial or reading.device.rsplit("_", 1)[-1],
        "model": identity.model or "",
        "capacity_bytes": identity.capacity_bytes,
        "failure": int(dead.get(reading.device) == _day(reading)),
    }
    for n, attribute in smart.attributes.items():
        row[f"smart_{n}_raw"] = float(attribute.raw)
        row[f"smart_{n}_normalized"] = attribute.value
    # What the features believe stands above the drive's own table; NaN is what they do not.
    return row | {f"smart_{n}_raw": value if value == value else None for n, value in values(smart).items()}


def _number(name: str) -> tuple[int, str]:
    _, number, kind = name.split("_")
    return int(number), kind


def _day(reading: Reading) -> date:
    return reading.taken_at.astimezone(UTC).date()


def _read(files: Any, path: str) -> pa.Table | None:
    import pyarrow.parquet as pq

    if not files.exists(path):
        return None
    try:
        with files.open(path, "rb") as file:
            return pq.ParquetFile(file).read()
    except (OSError, ValueError) as error:
        raise ExportFailed(f"{path} cannot be read ({error}); move it away, and it is made anew") from error


def _write(files: Any, path: str, table: pa.Table) -> None:
    """The whole file under its name, or nothing."""
    import pyarrow.parquet as pq

    begun = f"{path}.{uuid4().hex}.part"  # another export may write the same month now
    try:
        files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        try:
            with files.open(begun, "wb") as file:
                pq.write_table(table, file, compression="zstd")
            files.mv(begun, path)
        except BaseException:
            with suppress(OSError):
                files.rm(begun)
            raise
    except OSError as error:
        raise ExportFailed(f"{path} cannot be written ({error}); name a folder that you may write") from error
