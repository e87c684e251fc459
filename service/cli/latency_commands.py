"""`predrain latency`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.executor_choice import Threads


def score_latency_command(
    *history: Annotated[Path, Parameter(help="latency files: parquet or CSV, one or many")],
    out: Annotated[Path, Parameter(help="parquet or CSV, by its ending")],
    threads: Threads = 2,
) -> int:
    """Score disks by their latency beside their host's other disks: a row for every disk and day.

    HISTORY has host, disk, ts (epoch seconds), lat_mean and thr_kBps, in parquet or CSV, one file or many.

    Example: predrain latency score latency-*.parquet --out slow.parquet
    """
    if not history:
        print(
            "predrain latency score: name a history file; see predrain latency score --help", file=sys.stderr
        )
        return 2
    from predrain.models.forecast.score_file import ScoreFile
    from predrain.models.slow.latency_history import LatencyFiles, score_latency_days

    tell = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    files = LatencyFiles(history, threads=threads)
    rows = 0
    slow: set[tuple[object, object]] = set()
    hosts: set[object] = set()
    with ScoreFile(out) as sink:
        for table in score_latency_days(files, tell):
            sink.write(table)
            rows += len(table)
            bad = table.filter(table["slow"])
            slow.update(zip(bad["host"].to_pylist(), bad["disk"].to_pylist(), strict=True))
            hosts.update(table.filter(table["whole_host"])["host"].to_pylist())
    for sentence in files.refused:
        print(sentence, file=sys.stderr)
    if not rows:
        print("no row names a host, a disk and a time; check the history", file=sys.stderr)
        return 1
    print(f"wrote {out}: {rows:,} disk days, {len(slow)} slow disks, {len(hosts)} slow hosts")
    return 3 if files.refused else 0
