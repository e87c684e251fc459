"""Exports stored readings as Backblaze-shaped parquet on any file system, for training on a service's own data.

There is one file for each month, `month=YYYY-MM/part.parquet`, with a row for each daily value of a drive: `date,
serial_number, model, capacity_bytes, failure, smart_N_raw, smart_N_normalized`. A file is there whole or not at all.
A file that has all that the store has of its month is left alone: an export that was stopped continues, and a daily
export rewrites only the last month. Rows that the store no longer has stay in their file. `failure` is 1 on the
drive's last day up to the stated day of its death.
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
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.reading import Reading, Smart
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import Store

if TYPE_CHECKING:
    import pyarrow as pa

DEATHS: Final = frozenset({DriveFate.FAILED, DriveFate.CONFIRMED})
VERDICTS: Final = DEATHS | {DriveFate.CLEARED}
MADE_OF: Final = b"predrain.made_of"
PIECE: Final = 5_000
"""Rows that are turned into columns at once: as dicts they take ten times the memory."""
_LARGEST: Final = 2**63 - 1
FORM: Final = "1"
"""Version of the file format. A new version causes every file to be written again."""


class ExportFailed(Refusal):
    """The folder cannot be written, or holds a file that cannot be read."""


@dataclass(frozen=True, slots=True)
class ExportedMonth:
    """A file that was checked. `rows` is the number of its rows, or None if the file was already complete."""

    path: str
    rows: int | None


def export_monthly_files(
    store: Store, url: str, values: Callable[[Smart], Mapping[int, float]], *, through: date
) -> Iterator[ExportedMonth]:
    """Write every month up to the day `through` whose file is missing or incomplete, oldest first.

    `url` is a folder in the notation of fsspec. `values` gives SMART id -> plausible decoded count, as the features
    use it. Raises ExportFailed, and the errors of the store.
    """
    files, folder = _open_export_folder(url)
    marks: dict[date, list[tuple[date, int]]] = defaultdict(list)
    for day, mark in store.compute_day_fingerprints().items():
        if day <= through:
            marks[day.replace(day=1)].append((day, mark))
    died = find_death_days(store)
    for month, days in sorted(marks.items()):
        last = min((month + timedelta(days=31)).replace(day=1) - timedelta(days=1), through)
        path = f"{folder}/month={month:%Y-%m}/part.parquet"
        dead = {device: day for device, day in died.items() if month <= day <= last}
        made_of = _compute_month_digest(days, dead)
        before = _read_month_file(files, path)
        if before is not None and (before.schema.metadata or {}).get(MADE_OF) == made_of:
            yield ExportedMonth(path, None)
            continue
        table = _build_month_table(store.read_daily_readings(month, last), dead, values, before)
        _write_month_file(files, path, table.replace_schema_metadata({MADE_OF: made_of}))
        yield ExportedMonth(path, table.num_rows)


def _open_export_folder(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    try:
        files, folder = url_to_fs(url)
    except (OSError, ValueError, ImportError) as error:
        raise ExportFailed(
            f"{url} cannot be opened ({error}); name a folder, and see that what its kind of URL needs is installed"
        ) from error
    return files, str(folder).rstrip("/")


def find_death_days(store: Store) -> dict[DeviceId, date]:
    """Return the last daily value's day of each dead drive, up to the stated day of its death."""
    said: dict[DeviceId, Outcome] = {one.device: one for one in store.outcomes() if one.fate in VERDICTS}
    died = {}
    for device, outcome in said.items():
        if outcome.fate in DEATHS:
            day = outcome.at.astimezone(UTC).date()
            heard = [_to_utc_day(one) for one in store.readings(device) if isinstance(one.seen, Smart)]
            if upto := [one for one in heard if one <= day]:
                died[device] = upto[-1]
    return died


def _compute_month_digest(days: list[tuple[date, int]], dead: Mapping[DeviceId, date]) -> bytes:
    told = repr((FORM, sorted(days), sorted(dead.items())))
    return hashlib.sha256(told.encode()).hexdigest().encode()


def _build_month_table(
    readings: Iterator[Reading],
    dead: Mapping[DeviceId, date],
    values: Callable[[Smart], Mapping[int, float]],
    before: pa.Table | None,
) -> pa.Table:
    """Return the month's rows by drive and day: those of `readings`, and those of `before` that are missing there."""
    import pyarrow as pa

    rows = (_build_daily_row(one, one.seen, values, dead) for one in readings if isinstance(one.seen, Smart))
    pieces = [pa.Table.from_pylist([], schema=_build_parquet_schema(()))]
    while piece := list(islice(rows, PIECE)):
        pieces.append(
            pa.Table.from_pylist(piece, schema=_build_parquet_schema({name for row in piece for name in row}))
        )
    table = pa.concat_tables(pieces, promote_options="default")
    if before is not None:
        known = set(_list_row_keys(table))
        lacking = pa.array([key not in known for key in _list_row_keys(before)], pa.bool_())
        table = pa.concat_tables([table, before.filter(lacking)], promote_options="default")
    ordered = table.sort_by([("serial_number", "ascending"), ("date", "ascending")])
    return ordered.select(_build_parquet_schema(ordered.column_names).names)


def _build_parquet_schema(names: Iterable[str]) -> pa.Schema:
    """Return the columns that every file has, then the SMART columns in `names` by number."""
    import pyarrow as pa

    smart = sorted({name for name in names if name.startswith("smart_")}, key=_parse_smart_column)
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


def _list_row_keys(table: pa.Table) -> Iterator[tuple[str, date]]:
    return zip(table["serial_number"].to_pylist(), table["date"].to_pylist(), strict=True)


def _build_daily_row(
    reading: Reading,
    smart: Smart,
    values: Callable[[Smart], Mapping[int, float]],
    dead: Mapping[DeviceId, date],
) -> dict[str, Any]:
    identity = smart.identity
    row = {
        "date": _to_utc_day(reading),
        "serial_number": identity.serial or reading.device.rsplit("_", 1)[-1],
        "model": identity.model or "",
        "capacity_bytes": _keep_if_int64(identity.capacity_bytes),
        "failure": int(dead.get(reading.device) == _to_utc_day(reading)),
    }
    for n, attribute in smart.attributes.items():
        row[f"smart_{n}_raw"] = float(attribute.raw)
        row[f"smart_{n}_normalized"] = _keep_if_int64(attribute.value)
    # The values of the features replace those of the drive's own table; NaN is a value that they reject.
    return row | {f"smart_{n}_raw": value if value == value else None for n, value in values(smart).items()}


def _keep_if_int64(number: int | None) -> int | None:
    """Return the number, or None if the column cannot hold it: no drive has 8 EiB, and readings allow more."""
    return number if number is not None and number <= _LARGEST else None


def _parse_smart_column(name: str) -> tuple[int, str]:
    _, number, kind = name.split("_")
    return int(number), kind


def _to_utc_day(reading: Reading) -> date:
    return reading.taken_at.astimezone(UTC).date()


def _read_month_file(files: Any, path: str) -> pa.Table | None:
    import pyarrow.parquet as pq

    if not files.exists(path):
        return None
    try:
        with files.open(path, "rb") as file:
            return pq.ParquetFile(file).read()
    except (OSError, ValueError) as error:
        raise ExportFailed(f"{path} cannot be read ({error}); move it away, and it is made again") from error


def _write_month_file(files: Any, path: str, table: pa.Table) -> None:
    """Write the whole file under its name, or nothing."""
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
