"""models.evaluate: the protocol by which a forecast is judged. In: scores and truth. Out: a Report. It trains nothing.

The files: `truth` reads the outcomes and `scores` the forecasts. `cohort` says which drives are judged at which
landmarks. `ranking`, `alarms`, `calibration`, `life` and `strata` compute the measures. `judge` and `expectancy`
compute all figures under given weights of the drives. `bootstrap` computes their intervals and paired differences.
`curves` prepares pictures, and `truncation` tests whether the forecast looked ahead.
"""

from predrain.models.evaluate.bootstrap import (
    BootstrapInterval,
    ForecastFigures,
    NothingToJudge,
    Report,
    evaluate_forecasts,
)
from predrain.models.evaluate.curves import Curves, curves_of
from predrain.models.evaluate.drive_outcomes import FailureTruth, read_truth
from predrain.models.evaluate.expectancy_scores import FollowedEnds, read_ends
from predrain.models.evaluate.score_rows import DuplicateScores, Scores, landmarks_of, rank_only, read_scores
from predrain.models.evaluate.truncation_test import Truncation, compare_truncated_scores

__all__ = [
    "BootstrapInterval",
    "Curves",
    "DuplicateScores",
    "FailureTruth",
    "FollowedEnds",
    "ForecastFigures",
    "NothingToJudge",
    "Report",
    "Scores",
    "Truncation",
    "compare_truncated_scores",
    "curves_of",
    "evaluate_forecasts",
    "landmarks_of",
    "rank_only",
    "read_ends",
    "read_scores",
    "read_truth",
]
