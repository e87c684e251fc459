# ruff: noqa: S608 - table functions and columns cannot be bound as parameters; paths are quoted by `table_of`
"""Latency histories in files: `host, disk, ts, lat_mean, thr_kBps`, in bins of any width, judged day by day.

Rows are averaged in bins of 5 min, several days at a time, so that memory does not grow with the history. A column
`slow` is ignored. Disks are compared only within the same `cluster` and `device_class`, if these columns exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from predrain.data.history.history_tables import (
    UnreadableHistory,
    build_unreadable_error,
    is_parquet,
    table_of,
    types_of,
)
from predrain.models.slow.latency_ratios import ComparisonGroups, Floats, Ints, compute_period_ratios
from predrain.models.slow.slow_reasons import SlowDay, explain_slowness
from predrain.models.slow.slow_verdicts import SlowPeriod, SlowWatch, beside_peers
from predrain.models.slow.slowness_rules import DAY, DISKS, HOSTS

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BIN_SECONDS = 300
_ROWS_AT_ONCE = 8_000_000
_LATENCY: Mapping[str, str] = {"lat_mean": "1", "lat_x100": "1"}
_LOAD: Mapping[str, str] = {"thr_kBps": "1", "thr_Bps": "0.001"}


@dataclass(frozen=True, slots=True)
class DiskHistory:
    """Every disk of the files, in order, with the group in which it is compared. host, disk: labels as in the files."""

    host: Sequence[str]
    disk: Sequence[str]
    cluster: Ints
    roster: ComparisonGroups


class LatencyFiles:
    """Files of one history, or of several clusters that a `cluster` column distinguishes."""

    def __init__(self, paths: Sequence[Path], *, threads: int = 2) -> None:
        """Check the files' columns. `refused` gets a sentence for each file that cannot be used.

        Raises UnreadableHistory if no file can be used.
        """
        import duckdb

        self._connection = duckdb.connect(":memory:", config={"threads": threads})
        self._connection.execute("SET enable_progress_bar = false")
        self._paths: list[Path] = []
        self._selects: list[str] = []
        self.refused: list[str] = []
        for path in paths:
            try:
                self._selects.append(_build_select(path, types_of(self._connection, path)))
                self._paths.append(path)
            except UnreadableHistory as why:
                self.refused.append(str(why))
        if not self._selects:
            raise UnreadableHistory(" ".join(self.refused) or "No file was named; give a latency history.")

    def list_disks(self) -> DiskHistory:
        """List every disk that any row names. Raises UnreadableHistory."""
        rows = self._asked(
            f"SELECT * FROM (SELECT DISTINCT cluster, host, class, disk FROM ({self._rows()})) "
            "ORDER BY cluster, length(host), host, class, length(disk), disk"
        ).fetchall()
        groups: dict[tuple[str, str, str], int] = {}
        clusters: dict[str, int] = {}
        group = [groups.setdefault((c, h, k), len(groups)) for c, h, k, _ in rows]
        # Hosts are compared only with hosts of their own cluster and class.
        part = [clusters.setdefault(f"{c}\x00{k}", len(clusters)) for c, _, k, _ in rows]
        self._connection.execute("CREATE OR REPLACE TEMP TABLE disks (cluster VARCHAR, host VARCHAR, class VARCHAR,"
                                 " disk VARCHAR, id INTEGER)")  # fmt: skip
        if rows:
            import pyarrow as pa

            columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
            names = ["cluster", "host", "class", "disk", "id"]
            numbers = pa.array(np.arange(len(rows), dtype=np.int32))
            self._connection.register("known", pa.table([*columns, numbers], names=names))
            self._connection.execute("INSERT INTO disks SELECT * FROM known")
            self._connection.unregister("known")
        return DiskHistory(
            [row[1] for row in rows],
            [row[3] for row in rows],
            np.array(part, dtype=np.int64),
            ComparisonGroups.from_groups(np.array(group, dtype=np.int64)),
        )

    def count_rows_by_day(self) -> list[tuple[int, int]]:
        """Return (day since 1970, rows) of every day with rows. Raises UnreadableHistory."""
        found = self._asked(
            f"SELECT ts // {DAY} AS day, count(*) FROM ({self._rows()}) GROUP BY 1 ORDER BY 1"
        )
        return [(int(day), int(count)) for day, count in found.fetchall()]

    def read_bins(self, first: int, last: int) -> Mapping[str, Any]:
        """Read the bins of days [first, last], ordered by day: id, bin (since 1970), latency, load. Raises
        UnreadableHistory."""
        return self._asked(
            f"SELECT id, ts // {BIN_SECONDS} AS bin, avg(latency) FILTER (latency > 0) AS latency, "
            f"avg(load) AS load FROM ({self._rows()}) JOIN disks USING (cluster, host, class, disk) "
            f"WHERE ts >= {first * DAY} AND ts < {(last + 1) * DAY} GROUP BY ALL ORDER BY bin"
        ).fetchnumpy()

    def _rows(self) -> str:
        every = " UNION ALL ".join(self._selects)
        return f"SELECT * FROM ({every}) WHERE host IS NOT NULL AND disk IS NOT NULL AND ts >= 0"

    def _asked(self, query: str) -> duckdb.DuckDBPyConnection:
        import duckdb

        try:
            return self._connection.execute(query)
        except duckdb.Error as error:
            named = [path for path in self._paths if str(path) in str(error)]
            raise build_unreadable_error(named[0] if named else self._paths[0], error) from None


def _build_select(path: Path, types: Mapping[str, str]) -> str:
    """Build a query that reads one file into the common columns. Raises UnreadableHistory when a column is missing."""
    latency = next((name for name in _LATENCY if name in types), None)
    load = next((name for name in _LOAD if name in types), None)
    missing = [name for name in ("host", "disk", "ts") if name not in types]
    missing += ["lat_mean"] * (latency is None)
    if missing:
        raise UnreadableHistory(
            f"{path} lacks {', '.join(missing)}; give host, disk, ts, lat_mean, thr_kBps."
        )
    at = "epoch(ts)" if types["ts"].startswith(("TIMESTAMP", "DATE")) else "TRY_CAST(ts AS DOUBLE)"

    def text(name: str) -> str:
        return f"trim(CAST({name} AS VARCHAR))" if name in types else "''"

    work = f"TRY_CAST({load} AS DOUBLE) * {_LOAD[load]}" if load is not None else "NULL::DOUBLE"
    return (
        f"SELECT coalesce({text('cluster')}, '') AS cluster, nullif({text('host')}, '') AS host, "
        f"coalesce({text('device_class')}, '') AS class, nullif({text('disk')}, '') AS disk, "
        f"TRY_CAST(floor({at}) AS BIGINT) AS ts, TRY_CAST({latency} AS DOUBLE) AS latency, {work} AS load "
        f"FROM {table_of(path) if not is_parquet(path) else _build_parquet_scan(path)}"
    )


def _build_parquet_scan(path: Path) -> str:
    quoted = str(path).replace("'", "''")
    return f"read_parquet('{quoted}')"


def score_latency_days(files: LatencyFiles, tell: Callable[[str], None]) -> Iterator[pa.Table]:
    """Yield a table for each stretch of days: one row for every disk and day with any row, ordered by day.

    The columns are host, disk, day, score, slow, whole_host, reason. `tell` gets a line of progress for each
    stretch. Raises UnreadableHistory.
    """
    disks = files.list_disks()
    days = files.count_rows_by_day()
    rows, done = sum(count for _, count in days), 0
    groups, _ = disks.roster.shape
    watch, hosts = SlowWatch(DISKS, len(disks.host)), SlowWatch(HOSTS, groups)
    for first, last, count in _split_into_stretches(days):
        judged = list(_judge_days(files.read_bins(first, last), disks, watch, hosts))
        done += count
        tell(f"{done / rows:4.0%}  {done:,} of {rows:,} rows, {np.datetime64(last, 'D')}")
        yield _build_score_table(disks, judged)


def _split_into_stretches(days: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    first, held = 0, 0
    for index, (day, count) in enumerate(days):
        if held and held + count > _ROWS_AT_ONCE:
            yield days[first][0], days[index - 1][0], held
            first, held = index, 0
        held += count
        if index == len(days) - 1:
            yield days[first][0], day, held


def _judge_days(
    bins: Mapping[str, Any], disks: DiskHistory, watch: SlowWatch, hosts: SlowWatch
) -> Iterator[SlowDay]:
    ids = np.asarray(bins["id"], dtype=np.int64)
    slots = np.asarray(bins["bin"], dtype=np.int64)
    latency = np.ma.filled(np.ma.asarray(bins["latency"], dtype=np.float32), np.float32(np.nan))
    load = np.ma.filled(np.ma.asarray(bins["load"], dtype=np.float32), np.float32(np.nan))
    per_day = DAY // BIN_SECONDS
    edges = [*np.flatnonzero(np.diff(slots // per_day, prepend=-1)).tolist(), len(slots)]
    for start, end in pairwise(edges):
        piece = slice(start, end)
        yield judged_day(
            int(slots[start]) // per_day, ids[piece], slots[piece] % per_day, latency[piece], load[piece], disks, watch,
            hosts,
        )  # fmt: skip


def judged_day(
    day: int,
    ids: Ints,
    slots: Ints,
    latency: Floats,
    load: Floats,
    disks: DiskHistory,
    watch: SlowWatch,
    hosts: SlowWatch,
) -> SlowDay:
    """Judge one day of every disk that has a row."""
    groups, _ = disks.roster.shape
    disk = np.full(len(disks.host), np.nan, dtype=np.float32)
    against = np.full_like(disk, np.nan)
    peers, answered = np.zeros(len(disk), dtype=np.int64), np.zeros(len(disk), dtype=np.int64)
    host = np.full(groups, np.nan, dtype=np.float32)
    cluster = disks.cluster[ids]
    for part in np.flatnonzero(np.bincount(cluster)):
        mine = cluster == part
        found = compute_period_ratios(
            disks.roster, ids[mine], slots[mine], latency[mine], load[mine] if np.isfinite(load[mine]).any() else None
        )  # fmt: skip
        ours = disks.cluster == part
        disk[ours], against[ours] = found.disk[ours], beside_peers(found)[ours]
        peers[ours], answered[ours] = found.peers[ours], found.bins[ours]
        known = np.isfinite(found.host)
        host[known] = found.host[known]
    standing: SlowPeriod = watch.step(day, against)
    whole: SlowPeriod = hosts.step(day, host)
    return SlowDay(
        day, np.flatnonzero(np.bincount(ids)), disk, against, peers, answered, host, standing, whole
    )


def _build_score_table(disks: DiskHistory, judged: Sequence[SlowDay]) -> pa.Table:
    import pyarrow as pa

    which = np.concatenate([day.present for day in judged])
    group = [disks.roster.group[day.present] for day in judged]
    score = np.exp(np.concatenate([day.disk[day.present] for day in judged]).astype(np.float64))
    reasons = [line for day in judged for line in explain_slowness(day, disks.roster, disks.host)]
    columns: dict[str, Any] = {
        "host": _to_label_array(disks.host, which),
        "disk": _to_label_array(disks.disk, which),
        "day": pa.array(
            np.concatenate([np.full(len(day.present), day.day, dtype=np.int32) for day in judged]), pa.int32()
        ).cast(pa.date32()),
        "score": pa.array(score, mask=~np.isfinite(score)),
        "slow": np.concatenate([day.standing.slow[day.present] for day in judged]),
        "whole_host": np.concatenate([d.whole.slow[g] for d, g in zip(judged, group, strict=True)]),
        "reason": pa.array(reasons, pa.string()),
    }  # fmt: skip
    return pa.table(columns)


def _to_label_array(labels: Sequence[str], which: Ints) -> pa.Array:
    """Return the labels as numbers if all of them are numbers, else as text."""
    import pyarrow as pa

    if all(label.isdecimal() and str(int(label)) == label for label in labels):
        return pa.array(np.array([int(label) for label in labels], dtype=np.int64)[which])
    return pa.array(np.array(labels, dtype=object)[which], pa.string())
