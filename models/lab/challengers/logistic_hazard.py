"""A logistic hazard: additive log odds from logarithms of counts, decaying rises, and a smooth effect of age."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.drive_history_rows import COUNTERS
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.models.forecast.drive_family import MAKERS
from predrain.models.forecast.hazard import INTERVALS
from predrain.models.lab.challengers.cross_fitting import Forecaster
from predrain.models.lab.challengers.person_periods import (
    append_interval_column,
    periods_of,
    predict_horizon_probabilities,
)
from predrain.models.lab.challengers.training_rows import Tell, TrainingRows

STRENGTH: Final = 0.02
"""Inverse of the strength of the ridge penalty."""
OUTLYING: Final = 5.0
"""Number of standard deviations at which a term is cut off, so that rare large counts do not dominate the sum."""
KNOTS: Final = 6
FADES: Final = (7.0, 30.0)
"""Days in which the effect of a rise falls to 1/e."""
_HOURS: Final = POSITION["hours"]
_FAMILY: Final = len(NAMES_IN_ORDER)
_SINCE: Final = [place for name, place in POSITION.items() if "since_" in name]
_COUNTED: Final = [
    POSITION[f"smart_{n}{what}"] for n in COUNTERS for what in ("", "_up_7d", "_up_30d", "_rises_30d")
]
_SYMPTOMS: Final = [POSITION[name] for name in ("symptoms", "rising_7d", "rising_30d", "sectors_up_7d")]
"""Features whose effect differs by interval: they weigh more on a near interval than on a far one."""


def logistic_hazard(lessons: TrainingRows, seed: int, _threads: int, _tell: Tell) -> Forecaster:
    """Train a ridge logistic regression on person-period rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, SplineTransformer, StandardScaler

    periods = periods_of(lessons)
    x = lessons.sight.x
    usual = float(np.nanmedian(x[:, _HOURS])) if np.isfinite(x[:, _HOURS]).any() else 0.0
    ageing = SplineTransformer(KNOTS, knots="quantile", extrapolation="constant", include_bias=False)
    ageing.fit(np.nan_to_num(x[:, [_HOURS]], nan=usual))

    def transformed(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        hours = ageing.transform(np.nan_to_num(rows[:, [_HOURS]], nan=usual))
        return np.concatenate([build_additive_terms(rows), hours], axis=1, dtype=np.float32)

    fitted = make_pipeline(
        FunctionTransformer(transformed),
        StandardScaler(),
        FunctionTransformer(np.clip, kw_args={"a_min": -OUTLYING, "a_max": OUTLYING}),
        LogisticRegression(C=STRENGTH, max_iter=300, tol=1e-6, random_state=seed),
    )
    weight = periods.weight / periods.weight.mean()
    fitted.fit(
        append_interval_column(x[periods.landmark], periods.interval),
        periods.dies,
        logisticregression__sample_weight=weight,
    )
    return lambda sight: predict_horizon_probabilities(sight.x, lambda rows: fitted.predict_proba(rows)[:, 1])


def build_additive_terms(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Build (rows, terms) whose weighted sum can be a log hazard. rows: features, family columns, interval."""
    counts = rows[:, _COUNTED]
    since = rows[:, _SINCE]
    maker = rows[:, [_FAMILY + 1]]
    interval = rows[:, [-1]] == np.arange(INTERVALS)
    size = np.nan_to_num(np.log1p(counts))
    symptoms = np.log1p(np.nan_to_num(rows[:, _SYMPTOMS]))
    terms = [
        size,
        counts > 0,
        *(np.nan_to_num(np.exp(-since / fade)) for fade in FADES),
        rows[:, [_FAMILY]],
        maker == np.arange(len(MAKERS)),
        interval,
        *(symptoms[:, [place]] * interval for place in range(len(_SYMPTOMS))),
    ]
    return np.concatenate(terms, axis=1, dtype=np.float32)
