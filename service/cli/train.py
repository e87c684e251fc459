"""`predrain train`."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def train(
    *history: Path,
    out: Path,
    until: Annotated[date | None, Parameter(help="use nothing that was known only later")] = None,
    exclude: Annotated[
        Path | None, Parameter(help="file of serial numbers, one a line, to leave out")
    ] = None,
    seed: int = 20180630,
    threads: int = 2,
    track: Annotated[str | None, Parameter(help="MLflow tracking URI, such as sqlite:///runs.db")] = None,
    name: Annotated[str | None, Parameter(help="the bundle's name; by default the folder's")] = None,
) -> int:
    """Train a bundle on drive histories (Backblaze-shaped parquet or CSV, with `failure` or a drives table).

    Example: predrain train drives/2018.parquet --until 2018-04-30 --out bundle
    """
    from data.refusal import Refusal
    from models.card import card_of
    from models.train import train as run
    from models.train import write

    if not history:
        print("predrain train: name at least one history file; see predrain train --help", file=sys.stderr)
        return 2
    barred: frozenset[str] = frozenset()
    if exclude is not None:
        if not exclude.is_file():
            raise Refusal(
                f"There is no file {exclude}; --exclude wants a list of serial numbers, one a line."
            )
        barred = frozenset(line.strip() for line in exclude.read_text().splitlines() if line.strip())
    trained = run(
        history,
        name=name or out.resolve().name,
        until=until,
        exclude=barred,
        seed=seed,
        threads=threads,
        tell=lambda line: print(line, file=sys.stderr, flush=True),
    )
    write(trained, out, card_of(trained.facts))
    if track is not None:
        from models.registry import track as write_down

        print(f"tracked as run {write_down(track, trained.facts, out)}", file=sys.stderr)
    print(
        f"wrote {out}: {trained.facts.counts['drives']:,} drives, {trained.facts.counts['deaths']:,} deaths"
    )
    return 0
