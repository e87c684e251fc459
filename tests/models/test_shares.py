"""Processes that copy a history read each row once, and what they copy reads as the files do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from predrain.data.history import HistoryFiles, SerialRange, UnreadableHistory
from predrain.data.history.row_copies import FileShare, copy_share, cut_into_shares
from predrain.data.lifespan import sources_of
from predrain.models.forecast.landmarks import Landmarks, draw_landmarks
from predrain.models.forecast.part_executor import ThreadExecutor

DRIVES = 300
GROUP = 2_000
"""Rows of a row group: a month of the drives has several."""


@dataclass(frozen=True)
class Elsewhere:
    """An executor that hands work and parts on as other processes get them: pickled, each to a process in turn."""

    workers: int
    rows_per_part: int

    @property
    def copiers(self) -> Elsewhere:
        return self

    def map_parts(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[Any]:
        for part in parts:
            yield pickle.loads(pickle.dumps(partial(work, part)))()

    def grow_booster(self, *_: object, **__: object) -> Any:
        raise AssertionError("no booster is grown here")


def months(folder: Path, count: int) -> list[Path]:
    """Daily rows of all drives by day, a file for each month: every drive lies in every file."""
    rng = np.random.default_rng(5)
    serials = np.array([f"Z{number:05}" for number in rng.permutation(DRIVES)])
    paths = []
    for month in range(count):
        days = [date(2017, 1, 1) + timedelta(days=30 * month + day) for day in range(30)]
        rows = len(days) * DRIVES
        table = pa.table(
            {
                "date": pa.array(np.repeat(np.array(days, dtype="datetime64[D]"), DRIVES)),
                "serial_number": np.tile(serials, len(days)),
                "model": ["ST4000DM000"] * rows,
                "failure": ((np.arange(rows) == rows - 1 - month) & (month == count - 1)).astype(int),
                "smart_5_raw": rng.integers(0, 4, rows),
                "smart_9_raw": np.repeat(np.arange(30) * 24 + month * 720, DRIVES),
                "smart_197_raw": rng.integers(0, 2, rows),
            }
        )
        paths.append(folder / f"{month:02}.parquet")
        pq.write_table(table, paths[-1], row_group_size=GROUP)
    return paths


def drawn(paths: Sequence[Path], executor: Any) -> Landmarks:
    (source,) = sources_of(paths)
    return draw_landmarks(source, until=None, seed=1, executor=executor)


def read_bytes(work: Callable[[], object]) -> int:
    """Count the bytes that this process reads from files meanwhile, also those that the page cache has."""

    def count() -> int:
        lines = Path("/proc/self/io").read_text().splitlines()
        return int(lines[0].removeprefix("rchar:"))

    before = count()
    work()
    return count() - before


def test_landmarks_of_drives_that_lie_in_several_files_do_not_depend_on_who_copies(tmp_path: Path) -> None:
    paths = months(tmp_path, 3)
    here, apart = drawn(paths, ThreadExecutor(1)), drawn(paths, Elsewhere(2, rows_per_part=2_500))
    assert len(here)
    for name in Landmarks.__slots__:
        one, other = getattr(here, name), getattr(apart, name)
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), name


def test_twice_the_history_is_at_most_2_2_times_the_bytes_to_read(tmp_path: Path) -> None:
    paths = months(tmp_path, 8)
    executor = Elsewhere(2, rows_per_part=6_000)
    once, twice = (read_bytes(lambda some=some: drawn(some, executor)) for some in (paths[:4], paths))
    assert len(HistoryFiles(paths).split_into_parts(executor.rows_per_part)) > 10
    assert twice <= 2.2 * once


def test_shares_hold_each_row_group_and_each_csv_file_once_and_about_as_many_bytes(tmp_path: Path) -> None:
    paths = months(tmp_path, 2)
    for number, length in ((0, 900), (1, 1_100)):
        rows = "".join(f"2018-01-01,C{row},M\n" for row in range(length))
        paths.append(tmp_path / f"{number}.csv")
        paths[-1].write_text("date,serial_number,model\n" + rows)
    files = HistoryFiles(paths)
    shares = cut_into_shares(files._connection, files._tables, 3)
    taken: dict[Path, list[tuple[int, int] | None]] = {}
    for share in shares:
        for one in share.slices:
            taken.setdefault(one.table.path, []).append(one.rows)
    assert taken[paths[2]] == taken[paths[3]] == [None]
    for path in paths[:2]:
        edges = [edge for rows in taken[path] if rows is not None for edge in rows]
        assert edges[0] == 0
        assert edges[-1] == 30 * DRIVES
        assert edges[1:-1:2] == edges[2:-1:2]
        assert all(edge % GROUP == 0 for edge in edges[:-1])
    assert len(shares) == 3


def test_more_workers_than_row_groups_leave_no_share_empty(tmp_path: Path) -> None:
    files = HistoryFiles(months(tmp_path, 1))
    shares = cut_into_shares(files._connection, files._tables, 50)
    assert len(shares) == -(-30 * DRIVES // GROUP)
    assert all(share.slices for share in shares)


def test_a_repeated_day_counts_by_its_last_file_though_another_process_copied_it(tmp_path: Path) -> None:
    head = "date,serial_number,model,smart_5_raw\n"
    paths = [tmp_path / f"{n}.csv" for n in range(4)]
    for number, path in enumerate(paths):
        path.write_text(head + "".join(f"2018-01-01,S{row},M,{number}\n" for row in range(20)))
    files = HistoryFiles(paths)
    parts = files.split_into_parts(12, Elsewhere(2, 12))
    assert len(parts) > 5
    read = [pickle.loads(pickle.dumps(files)).read(part=part) for part in parts]
    assert {float(value) for one in read for value in one.raw[5]} == {3.0}
    assert sum(one.told.duplicates for one in read) == files.read().told.duplicates == 60


def test_lines_that_could_not_be_parsed_are_counted_once_over_all_shares(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.csv" for n in range(3)]
    for path in paths:
        rows = "".join(f"2018-01-0{day},S{row},M\n" for row in range(20) for day in (1, 2))
        path.write_bytes(b"date,serial_number,model\n" + rows.encode() + b"2018-01-01,\xff\xfe,M\n")
    files = HistoryFiles(paths)
    parts = files.split_into_parts(30, Elsewhere(2, 30))
    read = [files.read(part=part).told.broken for part in parts]
    assert sum(read) == files.read().told.broken == 3


def copied(tmp_path: Path) -> tuple[HistoryFiles, Path, FileShare]:
    files = HistoryFiles(months(tmp_path, 1))
    folder = tmp_path / "scratch"
    folder.mkdir()
    return files, folder, cut_into_shares(files._connection, files._tables, 1)[0]


def test_a_share_that_two_workers_copied_is_there_once(tmp_path: Path) -> None:
    _, folder, share = copied(tmp_path)
    for _ in range(2):
        assert copy_share(share, folder=folder, lows=["Z00100", "Z00200"], threads=1) == 0
    assert [one.name for one in folder.iterdir()] == ["share-0"]
    stored = pq.read_table(folder / "share-0", partitioning=None)
    assert stored.num_rows == 30 * DRIVES


def test_a_copy_that_a_killed_worker_left_half_done_is_not_read(tmp_path: Path) -> None:
    files, folder, _ = copied(tmp_path)
    parts = files.split_into_parts(2_000, Elsewhere(1, 2_000))
    assert parts[1].copies is not None
    folder = parts[1].copies.folder
    left = folder / "copying-x" / "part=1"
    left.mkdir(parents=True)
    (left / "data_0.parquet").write_bytes(b"half")
    assert files.read(part=parts[1]).serials.tolist()


def test_a_worker_that_does_not_see_the_scratch_folder_names_the_cure(tmp_path: Path) -> None:
    files, folder, share = copied(tmp_path)
    parts = files.split_into_parts(2_000, Elsewhere(1, 2_000))
    other = copy.copy(files)
    del files  # and with it the folder
    for work in (
        lambda: copy_share(share, folder=folder / "gone", lows=[], threads=1),
        lambda: other.read(part=parts[0]),
    ):
        with pytest.raises(UnreadableHistory, match=r"a file system that all workers share.*TMPDIR"):
            work()


def test_a_worker_that_does_not_see_a_file_names_it(tmp_path: Path) -> None:
    _, folder, share = copied(tmp_path)
    (path,) = {one.table.path for one in share.slices}
    path.unlink()
    with pytest.raises(UnreadableHistory, match=f"sees no {path}"):
        copy_share(share, folder=folder, lows=[], threads=1)


def test_few_parts_are_copied_too_where_others_read_them(tmp_path: Path) -> None:
    files = HistoryFiles(months(tmp_path, 1))
    for elsewhere, expected in ((None, True), (Elsewhere(1, 5_000), False)):
        parts = files.split_into_parts(5_000, elsewhere)
        assert len(parts) == 2
        assert all((part.copies is None) is expected for part in parts)
    assert files.split_into_parts(10**6, Elsewhere(1, 10**6)) == [SerialRange()]
