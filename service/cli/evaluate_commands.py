"""`predrain evaluate`: the protocol's figures as a table for people or JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress

if TYPE_CHECKING:
    from predrain.models.evaluate import Report, Scores, Truncation
    from predrain.models.evaluate.arrays import Ints

MANY = Parameter(consume_multiple=True, negative="")
WIDTH = 130
"""Columns of a table that goes into a file."""


def evaluate_forecast_command(
    scores: Path,
    *,
    truth: Annotated[list[Path], MANY],
    baseline: Annotated[list[Path] | None, MANY] = None,
    truncated: Path | None = None,
    life_long: Path | None = None,
    resamples: int = 1000,
    seed: int = 0,
    from_: Annotated[date | None, Parameter(name="--from")] = None,
    to: date | None = None,
    every: int = 7,
    json: bool = False,
) -> int:
    """Judge a forecast against what happened.

    Example: predrain evaluate scores.parquet --truth 2018q3.parquet

    Parameters
    ----------
    scores
        parquet or CSV as `predrain score` writes it.
    truth
        daily histories with a `failure` column, or change points with their drives table.
    baseline
        other scores, judged on the same drives; differences get paired intervals.
    truncated
        the same landmarks scored from a history cut at them: exit 1 when they are not equal.
    life_long
        ends known years later: parquet of serial_number, end_date, event (failed|removed|in service).
    resamples
        number of resamples of the drives for each interval.
    seed
        seed of the resamples.
    from_
        first landmark; without it the landmarks are the days of the scores.
    to
        last landmark.
    every
        days between landmarks, with --from.
    json
        print JSON.
    """
    from predrain.models.evaluate import (
        DuplicateScores,
        compare_truncated_scores,
        read_ends,
        read_scores,
        read_truth,
    )
    from predrain.models.evaluate import evaluate_forecasts as judge

    try:
        forecast = read_scores(scores)
        others = [read_scores(path) for path in baseline or ()]
        cut = compare_truncated_scores(forecast, read_scores(truncated)) if truncated else None
    except DuplicateScores as error:
        print(f"predrain: {error}", file=sys.stderr)
        return 2
    with show_resampling_progress() as on_step:
        report = judge(
            read_truth(truth),
            list(zip(_name_score_files([scores, *(baseline or ())]), [forecast, *others], strict=True)),
            resamples=resamples,
            seed=seed,
            ends=read_ends(life_long) if life_long else None,
            landmarks=_list_landmark_days(forecast, from_, to, every),
            on_step=on_step,
        )
    if json:
        sys.stdout.buffer.write(as_json(report, cut) + b"\n")
    else:
        from predrain.models.evaluate.score_tables import render_evaluation_report

        console = Console()
        if not console.is_terminal:
            console.width = WIDTH
        for line in render_evaluation_report(report, cut):
            console.print(line)
    return 1 if cut is not None and cut.differences else 0


def as_json(report: Report, cut: Truncation | None) -> bytes:
    """The report's fields as they are named in `models.evaluate`; what is unknown is null."""
    return msgspec.json.encode({"report": report, "truncation": cut})


def _name_score_files(paths: list[Path]) -> list[str]:
    """Return the file names, or the whole paths if two files have the same name."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _list_landmark_days(forecast: Scores, first: date | None, last: date | None, every: int) -> Ints | None:
    if first is None and last is None:
        return None
    import numpy as np

    epoch = date(1970, 1, 1)
    begin = int(forecast.day.min()) if first is None else (first - epoch).days
    end = int(forecast.day.max()) if last is None else (last - epoch).days
    return np.arange(begin, end + 1, every, dtype=np.int64)


@contextmanager
def show_resampling_progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr while resamples are drawn; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("resampling drives")
        yield lambda done, of: progress.update(task, completed=done, total=of)
