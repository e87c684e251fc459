"""`predrain score`."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.executor_choice import Dask, HistoryFile, RowsAPart, Threads, choose_executor


def score_drives_command(
    *history: HistoryFile,
    first: Annotated[date, Parameter(name="--from", help="first landmark day")],
    last: Annotated[date, Parameter(name="--to", help="last landmark day")],
    out: Annotated[Path, Parameter(help="parquet or CSV, by its ending")],
    every: Annotated[int, Parameter(help="days from landmark to landmark")] = 1,
    bundle: Annotated[Path | None, Parameter(help="bundle folder; by default the one that ships")] = None,
    threads: Threads = 2,
    rows_per_part: RowsAPart = None,
    dask: Dask = None,
) -> int:
    """Score drives on landmark days: chances to fail within 7, 14 and 30 days, life expectancy, status, reason.

    Example: predrain score drives.parquet --from 2018-05-01 --to 2018-06-30 --every 7 --out scores.parquet
    """
    from predrain.data.history import HistoryDefects, HistoryFiles, list_history_files
    from predrain.models.deploy.bundle_trial import BundleTrials
    from predrain.models.forecast.bundle import Bundle
    from predrain.models.forecast.history_scores import score_landmark_days as run
    from predrain.models.forecast.score_file import ScoreFile

    why = None
    if not history:
        why = "name a history file"
    elif every < 1 or last < first:
        why = "--every must be 1 or more and --to not before --from"
    elif rows_per_part is not None and rows_per_part < 1:
        why = "--rows-per-part must be 1 or more"
    if why is not None:
        print(f"predrain score: {why}; see predrain score --help", file=sys.stderr)
        return 2
    BundleTrials().check(bundle)
    # One thread per bundle is enough, because parts are scored in parallel.
    loaded = Bundle.load(bundle, threads=1)
    told, rows = HistoryDefects(), 0
    tell = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    today = datetime.now(UTC).date()
    with ScoreFile(out) as sink:
        files = HistoryFiles(list_history_files(history), threads=threads, forgiving=True)
        with choose_executor(dask, rows_per_part, threads) as executor:
            for part in run(
                files, loaded, first=first, last=last, every=every, today=today, executor=executor, tell=tell
            ):
                sink.write(part.table)
                told, rows = told + part.told, rows + len(part.table)
    for sentence in (*files.refused, *told.sentences()):
        print(sentence, file=sys.stderr)
    if not rows:
        print(
            f"no drive has a row in the week before any day from {first} to {last}; check --from and --to",
            file=sys.stderr,
        )
    print(f"wrote {out}: {rows:,} scores")
    return 3 if files.refused or told.refused_rows else 0
