"""models.evaluate: the protocol by which a forecast is judged. In: scores and truth. Out: a Report. It
trains nothing.

A file an idea: `truth` (what happened), `scores` (what was forecast), `cohort` (who is judged on what),
`ranking`, `alarms`, `calibration`, `life`, `strata` (the measures), `judge` and `expectancy` (all figures
under given weights of the drives), `bootstrap` (their intervals and paired differences), `curves` (what a
picture needs), `truncation` (did the forecast look ahead).
"""

from predrain.models.evaluate.bootstrap import (
    BootstrapInterval,
    ForecastFigures,
    NothingToJudge,
    Report,
    evaluate,
)
from predrain.models.evaluate.curves import Curves, curves_of
from predrain.models.evaluate.expectancy import Ends, read_ends
from predrain.models.evaluate.scores import DuplicateScores, Scores, landmarks_of, rank_only, read_scores
from predrain.models.evaluate.truncation import Truncation, compare
from predrain.models.evaluate.truth import FailureTruth, read_truth

__all__ = [
    "BootstrapInterval",
    "Curves",
    "DuplicateScores",
    "Ends",
    "FailureTruth",
    "ForecastFigures",
    "NothingToJudge",
    "Report",
    "Scores",
    "Truncation",
    "compare",
    "curves_of",
    "evaluate",
    "landmarks_of",
    "rank_only",
    "read_ends",
    "read_scores",
    "read_truth",
]
