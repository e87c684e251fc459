"""The file of scores: parquet or CSV by its ending, written part by part and moved to its place when complete."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from predrain.data.refusal import Refusal

if TYPE_CHECKING:
    import pyarrow as pa


class UnwritableScores(Refusal):
    """The scores cannot be written to this file."""


class ScoreFile:
    """A context manager that writes tables. The file exists only if the context ends without an error."""

    def __init__(self, path: Path) -> None:
        if path.suffix.lower() not in (".parquet", ".pq", ".csv"):
            raise UnwritableScores(f"{path} does not say its format; end it in .parquet or .csv.")
        self._path = path
        self._draft = path.with_name(f".{path.name}.part")
        self._writer: Any = None

    def __enter__(self) -> ScoreFile:
        return self

    def write(self, table: pa.Table) -> None:
        """Append rows. Raises UnwritableScores."""
        import pyarrow.csv as csv
        import pyarrow.parquet as pq

        try:
            if self._writer is None and self._path.suffix.lower() == ".csv":
                self._writer = csv.CSVWriter(self._draft, table.schema)
            elif self._writer is None:
                self._writer = pq.ParquetWriter(self._draft, table.schema, compression="zstd")
            self._writer.write(table)
        except OSError as error:
            raise UnwritableScores(
                f"{self._path} cannot be written ({error.strerror}); choose another --out."
            ) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()
        if kind is None and self._writer is not None:
            self._draft.replace(self._path)
        else:
            self._draft.unlink(missing_ok=True)
