"""`predrain score`."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def score(
    *history: Path,
    first: Annotated[date, Parameter(name="--from", help="first landmark day")],
    last: Annotated[date, Parameter(name="--to", help="last landmark day")],
    out: Annotated[Path, Parameter(help="parquet or CSV, by its ending")],
    every: Annotated[int, Parameter(help="days from landmark to landmark")] = 1,
    bundle: Annotated[Path | None, Parameter(help="bundle folder; by default the one that ships")] = None,
    threads: int = 2,
) -> int:
    """Score drives on landmark days: chances to fail within 7, 14 and 30 days, life expectancy, status, reason.

    Example: predrain score drives.parquet --from 2018-05-01 --to 2018-06-30 --every 7 --out scores.parquet
    """
    from data.history import Told
    from models.bundle import Bundle
    from models.score import score as run
    from models.scorefile import ScoreFile

    if not history or every < 1 or last < first:
        why = "name a history file" if not history else "--every must be 1 or more and --to not before --from"
        print(f"predrain score: {why}; see predrain score --help", file=sys.stderr)
        return 2
    loaded = Bundle.load(bundle, threads=threads)
    told, rows = Told(), 0
    tell = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    today = datetime.now(UTC).date()
    with ScoreFile(out) as sink:
        for part in run(
            history, loaded, first=first, last=last, every=every, today=today, threads=threads, tell=tell
        ):
            sink.write(part.table)
            told, rows = told + part.told, rows + len(part.table)
    for sentence in told.sentences():
        print(sentence, file=sys.stderr)
    if not rows:
        print(
            f"no drive has a row in the week before any day from {first} to {last}; check --from and --to",
            file=sys.stderr,
        )
    print(f"wrote {out}: {rows:,} scores")
    return 0
