"""What scores were worth in bytes: from files and the protocol's truth to the replay of the drain engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from predrain.actions.core.policy import Policy
from predrain.actions.cost_benefit import (
    DailyForecasts,
    Fates,
    Layout,
    NoForecastToReplay,
    Notch,
    Rung,
    ladder,
    laid_out,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from predrain.models.calibrate import Thresholds
    from predrain.models.evaluate import FailureTruth, Scores

TB = 10**12
SIZE_BYTES = 4 * TB
"""What a drive of unknown capacity is taken for."""


def worth_of_scores(
    scores: Scores,
    truth: FailureTruth,
    policy: Policy,
    thresholds: Thresholds,
    *,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    resamples: int = 200,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Rung, ...]:
    """The worth of scores under a policy, and under other costs of a failure beside it.

    scores: of consecutive days, or of every so many (a score then stands until the next one). sizes: bytes of
    the drives by serial number (`sizes_of`); others are taken for 4 TB. Drives stand on a made layout (`laid_out`).
    Raises NothingToReplay.
    """
    forecasts, fates, layout = replayed(scores, truth, sizes=sizes, seed=seed)
    notch = Notch(thresholds.warning, thresholds.bad)
    return ladder(forecasts, fates, layout, policy, notch, resamples=resamples, seed=seed, tell=tell)


def replayed(
    scores: Scores, truth: FailureTruth, *, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> tuple[DailyForecasts, Fates, Layout]:
    """Scores and truth as the replay wants them: drives in service while scores are given, on a made layout.

    A drive that the scores lack stays in: nothing is forecast of it. One that came back into service after its
    failure (`FailureTruth.left_out`) is left out, as the protocol does. Raises NothingToReplay.
    """
    import numpy as np

    from predrain.models.evaluate import landmarks_of

    days = landmarks_of(scores)
    if not len(days):
        raise NoForecastToReplay("the scores have no rows; score the days with `predrain score` first")
    every = int(days[1] - days[0]) if len(days) > 1 else 1
    first, last = int(days[0]), int(days[-1]) + every - 1
    here = np.flatnonzero((truth.first <= last) & (truth.last >= first) & ~truth.left_out)
    died = truth.death[here] <= truth.end
    fates = Fates(
        truth.serials[here],
        truth.models[here],
        truth.first[here],
        np.where(died, truth.death[here], truth.last[here]),
        died,
        truth.end,
    )
    number = {str(serial): place for place, serial in enumerate(fates.devices)}
    drive = np.array([number.get(str(serial), -1) for serial in scores.serials], dtype=np.int64)
    known = drive >= 0
    p = scores.numbers["p_fail_30d"].astype(np.float64)
    if "status" in scores.words:
        p = np.where(scores.words["status"] == "unknown", np.nan, p)
    forecasts = DailyForecasts.spread(
        drive[known],
        scores.day[known],
        p[known],
        drives=len(here),
        every=every,
        sooner=_sooner(scores, known),
    )
    known_sizes = sizes or {}
    size = np.array([known_sizes.get(str(serial), SIZE_BYTES) for serial in fates.devices], dtype=np.int64)
    return forecasts, fates, laid_out(fates.models, size, seed=seed)


def _sooner(
    scores: Scores, known: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Chances within 7 and 14 days, where the scores have both for every row."""
    import numpy as np

    week, two = (scores.numbers.get(name) for name in ("p_fail_7d", "p_fail_14d"))
    if week is None or two is None or np.isnan(week[known]).any() or np.isnan(two[known]).any():
        return None
    return week[known].astype(np.float64), two[known].astype(np.float64)


def sizes_of(paths: Sequence[Path]) -> dict[str, int]:
    """Bytes of each drive by serial number, from `capacity_tb` or `capacity_bytes` where a parquet file has it.

    An absurd capacity (below 1 GB or above 1 PB) counts as not told.
    """
    import pyarrow.parquet as pq

    found: dict[str, int] = {}
    for path in paths:
        if path.suffix != ".parquet":
            continue
        names = set(pq.read_schema(path).names)
        column, unit = ("capacity_tb", TB) if "capacity_tb" in names else ("capacity_bytes", 1)
        if not {"serial_number", column} <= names:
            continue
        table = pq.read_table(path, columns=["serial_number", column])
        largest = table.group_by("serial_number").aggregate([(column, "max")])
        for serial, size in zip(
            largest["serial_number"].to_pylist(), largest[f"{column}_max"].to_pylist(), strict=True
        ):
            if size is not None and 10**9 <= size * unit <= 10**15:
                found[str(serial)] = round(size * unit)
    return found
