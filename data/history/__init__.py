"""data.history: drive histories, any mixture of Backblaze-shaped parquet and CSV files, as sorted columns.

In: files with `date, serial_number, model` and any of `smart_N_raw` (daily rows, or change points where a row holds
until the drive's next). Out: `History`, whole or a part of the drives at a time. Columns that a file lacks are null;
a value that cannot be true is null and counted; of several rows of a drive on one day the last wins (order of
power-on hours, then of the files). `failure` is read by `data.lifespan` for training, never here; `snapshot` is read
by nobody.
"""

from predrain.data.history.files import HistoryFiles, SerialRange
from predrain.data.history.rows import EPOCH, FIRST_DAY, History, HistoryDefects
from predrain.data.history.tables import UnreadableHistory, columns_of, day_sql, is_history, table_of
from predrain.data.history.values import LIMITS, believable, believable_one

__all__ = [
    "EPOCH",
    "FIRST_DAY",
    "LIMITS",
    "History",
    "HistoryDefects",
    "HistoryFiles",
    "SerialRange",
    "UnreadableHistory",
    "believable",
    "believable_one",
    "columns_of",
    "day_sql",
    "is_history",
    "table_of",
]
