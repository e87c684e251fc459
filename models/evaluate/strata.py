"""Failures and healthy windows by kind: symptomatic or silent, drive model, age by power-on hours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.arrays import Bools, Floats, Ints
from predrain.models.evaluate.cohort import Cohort, RowGroups
from predrain.models.evaluate.drive_outcomes import FailureTruth

LEAST_FAILURES = 20
"""Number of failures from which on a model is a stratum of its own."""
HOURS_A_YEAR = 8766.0
AGES = ("under 1 y", "1-2 y", "2-3 y", "3-4 y", "4-5 y", "5 y and over")


@dataclass(frozen=True, slots=True)
class Strata:
    """The strata of each failure and of each window."""

    names: tuple[str, ...]
    """`silent`, `symptomatic`, `model X`, `age 1-2 y`."""
    failure: Bools
    """(failures, strata)"""
    window: Bools
    """(windows, strata)"""


def assign_strata(truth: FailureTruth, cohort: Cohort, failed: RowGroups, healthy: RowGroups) -> Strata:
    """Assign each failure and window to its strata.

    A failure is classified by its last reading at least one day before death. A window is symptomatic if any of its
    landmarks is, and has the age of its first landmark.
    """
    dead = cohort.truth_drive[failed.drive]
    place = truth.find_latest_readings(dead, truth.death[dead] - 1)
    told = place >= 0
    sick = np.zeros(len(failed), dtype=bool)
    sick[told] = truth.symptomatic[place[told]]
    failure_hours = np.full(len(failed), np.nan)
    failure_hours[told] = truth.hours[place[told]]
    sick_window = np.zeros(len(healthy), dtype=bool)
    if len(healthy):
        sick_window = np.logical_or.reduceat(cohort.symptomatic[healthy.rows], healthy.start[:-1])
    window_hours = cohort.hours[healthy.rows[healthy.start[:-1]]]

    names: list[str] = ["symptomatic", "silent"]
    failure, window = [sick, ~sick], [sick_window, ~sick_window]
    model = truth.models[cohort.truth_drive]
    known, count = np.unique(model[failed.drive].astype(str), return_counts=True)
    for name in known[count >= LEAST_FAILURES]:
        names.append(f"model {name}")
        failure.append(model[failed.drive] == name)
        window.append(model[healthy.drive] == name)
    failure_age, window_age = _assign_age_groups(failure_hours), _assign_age_groups(window_hours)
    for number, name in enumerate(AGES):
        names.append(f"age {name}")
        failure.append(failure_age == number)
        window.append(window_age == number)
    return Strata(tuple(names), np.stack(failure, axis=1), np.stack(window, axis=1))


def _assign_age_groups(hours: Floats) -> Ints:
    years = np.nan_to_num(hours / HOURS_A_YEAR, nan=-1.0)
    return np.where(years < 0, -1, np.minimum(years, len(AGES) - 1)).astype(np.int64)
