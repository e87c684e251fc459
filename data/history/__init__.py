"""data.history: drive histories, any mixture of Backblaze-shaped parquet and CSV files, as sorted columns.

Input: files with `date, serial_number, model` and any of `smart_N_raw`. Rows are daily, or change points, where a row
holds until the drive's next row. Output: `History`, whole or for a part of the drives at a time.

Columns that a file lacks are null. A value that cannot be true is null and counted. If a drive has several rows on
one day, the last one counts (in the order of power-on hours, then of the files). `failure` is read by `data.lifespan`
for training, never here. `snapshot` is never read.
"""

from predrain.data.history.drive_rows import EPOCH, FIRST_DAY, History, HistoryDefects
from predrain.data.history.history_files import HistoryFiles, SerialRange
from predrain.data.history.history_tables import (
    UnreadableHistory,
    columns_of,
    day_sql,
    describe_files,
    is_archived,
    is_history,
    list_history_files,
    table_of,
)
from predrain.data.history.row_copies import Copiers
from predrain.data.history.smart_ranges import LIMITS, PACKED, believable_one, decode_plausible_values

__all__ = [
    "EPOCH",
    "FIRST_DAY",
    "LIMITS",
    "PACKED",
    "Copiers",
    "History",
    "HistoryDefects",
    "HistoryFiles",
    "SerialRange",
    "UnreadableHistory",
    "believable_one",
    "columns_of",
    "day_sql",
    "decode_plausible_values",
    "describe_files",
    "is_archived",
    "is_history",
    "list_history_files",
    "table_of",
]
