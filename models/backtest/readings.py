"""What a forecaster may see of the judged months: readings without a failure column.

Change points say nothing of a drive that did not change; for each drive in service at a landmark its last row is
carried forward to that day (`snapshot` true), so that it is scored. The row is a repeat and holds no news.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from predrain.models.evaluate.arrays import DAY_BITS, Ints, drive_day
from predrain.models.evaluate.cohort import gather
from predrain.models.evaluate.truth import FailureTruth, days

if TYPE_CHECKING:
    import pyarrow as pa


def without_fates(sources: Sequence[Path], out: Path, truth: FailureTruth, landmarks: Ints) -> None:
    """Write the readings of these files to one parquet file, carried forward to the landmarks where they are
    change points.

    landmarks: days since 1970-01-01.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.concat_tables([_read(path) for path in sources], promote_options="permissive")
    if not truth.daily.all():
        # Of rows of one day the last wins: the drive's own reading must stand after a carried one.
        table = pa.concat_tables([_carried(table, truth, landmarks), table], promote_options="permissive")
    pq.write_table(table, out, compression="zstd")


def cut_at(readings: Path, day: int, out: Path) -> None:
    """The rows dated up to a day (since 1970-01-01), in their order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(readings)
    pq.write_table(table.filter(pa.array(days(table["date"]) <= day)), out, compression="zstd")


def _read(path: Path) -> pa.Table:
    import pyarrow.csv
    import pyarrow.parquet as pq

    table = pyarrow.csv.read_csv(path) if path.suffix.lower() == ".csv" else pq.read_table(path)
    return table.drop_columns([name for name in ("failure",) if name in table.column_names])


def _carried(table: pa.Table, truth: FailureTruth, landmarks: Ints) -> pa.Table:
    import pyarrow as pa

    cohort = gather(truth, landmarks)
    place = _last_rows(table, truth, cohort.truth_drive[cohort.drive], cohort.landmark)
    seen = np.flatnonzero(place >= 0)
    carried = table.take(pa.array(place[seen]))
    day = pa.array(cohort.landmark[seen].astype(np.int32), pa.int32()).cast(pa.date32())
    columns = {name: carried[name] for name in carried.column_names}
    columns |= {
        "date": day.cast(carried.schema.field("date").type),
        "snapshot": pa.array(np.ones(len(seen), dtype=bool)),
    }
    return pa.table(columns)


def _last_rows(table: pa.Table, truth: FailureTruth, drive: Ints, day: Ints) -> Ints:
    """Place in the table of each drive's last row up to its day; -1 where it has none."""
    import pyarrow as pa

    number = {str(name): place for place, name in enumerate(truth.serials)}
    serial = table["serial_number"].cast(pa.string()).combine_chunks().dictionary_encode()
    known = np.array([number[str(name)] for name in serial.dictionary.to_pylist()], dtype=np.int64)
    key = drive_day(known[serial.indices.to_numpy(zero_copy_only=False)], days(table["date"]))
    order = np.argsort(key, kind="stable")
    place = np.searchsorted(key[order], drive_day(drive, day), side="right") - 1
    found = order[np.maximum(place, 0)]
    return np.where((place >= 0) & (key[found] >> DAY_BITS == drive), found, -1)
