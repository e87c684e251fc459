"""The readings of the judged months that a forecaster may see: no failure column.

Change points have no row for a drive that did not change. For each drive in service at a landmark, its last row is
carried forward to that day (`snapshot` true), so that the drive is scored. The row only repeats known values.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from predrain.data.history import is_archived
from predrain.models.evaluate.arrays import DAY_BITS, Ints, drive_day
from predrain.models.evaluate.cohort import gather_cohort
from predrain.models.evaluate.drive_outcomes import FailureTruth, to_epoch_days

if TYPE_CHECKING:
    import pyarrow as pa


def without_fates(sources: Sequence[Path], out: Path, truth: FailureTruth, landmarks: Ints) -> None:
    """Write the readings of these files to one parquet file. Change points are carried forward to the landmarks.

    landmarks: days since 1970-01-01.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.concat_tables([_read_without_failure(path) for path in sources], promote_options="permissive")
    if not truth.daily.all():
        # The last of several rows of one day wins, so the drive's own reading must stand after a carried one.
        table = pa.concat_tables(
            [_carry_rows_forward(table, truth, landmarks), table], promote_options="permissive"
        )
    pq.write_table(table, out, compression="zstd")


def cut_at(readings: Path, day: int, out: Path) -> None:
    """Write the rows dated up to a day (since 1970-01-01), in their order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(readings)
    pq.write_table(table.filter(pa.array(to_epoch_days(table["date"]) <= day)), out, compression="zstd")


def _read_without_failure(path: Path) -> pa.Table:
    import pyarrow.csv
    import pyarrow.parquet as pq

    if is_archived(path):
        table = pq.read_table(path, filters=[("daily", "==", True)])
    else:
        table = pyarrow.csv.read_csv(path) if path.suffix.lower() == ".csv" else pq.read_table(path)
    return table.drop_columns([name for name in ("failure",) if name in table.column_names])


def _carry_rows_forward(table: pa.Table, truth: FailureTruth, landmarks: Ints) -> pa.Table:
    import pyarrow as pa

    cohort = gather_cohort(truth, landmarks)
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
    """Return the place in the table of each drive's last row up to its day, or -1 without one."""
    import pyarrow as pa

    number = {str(name): place for place, name in enumerate(truth.serials)}
    serial = table["serial_number"].cast(pa.string()).combine_chunks().dictionary_encode()
    known = np.array([number[str(name)] for name in serial.dictionary.to_pylist()], dtype=np.int64)
    key = drive_day(known[serial.indices.to_numpy(zero_copy_only=False)], to_epoch_days(table["date"]))
    order = np.argsort(key, kind="stable")
    place = np.searchsorted(key[order], drive_day(drive, day), side="right") - 1
    found = order[np.maximum(place, 0)]
    return np.where((place >= 0) & (key[found] >> DAY_BITS == drive), found, -1)
