"""The worth of scores in bytes: from files and the true outcomes of the protocol to a replay of the drain engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from predrain.actions.core.drain_policy import Policy
from predrain.actions.cost_benefit import (
    DailyForecasts,
    DriveFates,
    DriveLayout,
    FailureCostRow,
    NoForecastToReplay,
    Notch,
    compare_failure_costs,
    laid_out,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from predrain.models.evaluate import FailureTruth, Scores
    from predrain.models.forecast.calibration import Thresholds

TB = 10**12
SIZE_BYTES = 4 * TB
"""The capacity that is assumed for a drive of unknown capacity."""


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
) -> tuple[FailureCostRow, ...]:
    """Return the worth of scores under a policy, and under other costs of a failure.

    scores: of consecutive days, or of every n-th day (a score then stands until the next one). sizes: bytes of
    the drives by serial number (`sizes_of`); other drives count as 4 TB. Drives stand on a synthetic layout
    (`laid_out`). Raises NoForecastToReplay.
    """
    forecasts, fates, layout = prepare_replay_inputs(scores, truth, sizes=sizes, seed=seed)
    notch = Notch(thresholds.warning, thresholds.bad)
    return compare_failure_costs(
        forecasts, fates, layout, policy, notch, resamples=resamples, seed=seed, tell=tell
    )


def prepare_replay_inputs(
    scores: Scores, truth: FailureTruth, *, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> tuple[DailyForecasts, DriveFates, DriveLayout]:
    """Return scores and truth in the form of the replay: drives in service while scores exist, on a synthetic
    layout.

    A drive without scores stays in, without a forecast. A drive that came back into service after its failure
    (`FailureTruth.left_out`) is left out, as the protocol demands. Raises NoForecastToReplay.
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
    fates = DriveFates(
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
    forecasts = DailyForecasts.from_rows(
        drive[known],
        scores.day[known],
        p[known],
        drives=len(here),
        every=every,
        sooner=_select_short_horizon_chances(scores, known),
    )
    known_sizes = sizes or {}
    size = np.array([known_sizes.get(str(serial), SIZE_BYTES) for serial in fates.devices], dtype=np.int64)
    return forecasts, fates, laid_out(fates.models, size, seed=seed)


def _select_short_horizon_chances(
    scores: Scores, known: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the chances within 7 and 14 days, or None unless the scores have both for every row."""
    import numpy as np

    week, two = (scores.numbers.get(name) for name in ("p_fail_7d", "p_fail_14d"))
    if week is None or two is None or np.isnan(week[known]).any() or np.isnan(two[known]).any():
        return None
    return week[known].astype(np.float64), two[known].astype(np.float64)


def sizes_of(paths: Sequence[Path]) -> dict[str, int]:
    """Return the bytes of each drive by serial number, from `capacity_tb` or `capacity_bytes` of the parquet
    files.

    An absurd capacity (below 1 GB or above 1 PB) counts as unknown.
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
