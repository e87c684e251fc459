"""Explanations: the reasons for a forecast, the advice, and the condition under which a flag clears.

In: a bundle's forecast with the features behind it. Out: one `Explanation` a drive, in an operator's words with
numbers and dates. The slow parts (contributions, forecasts of a quieter future) are computed for flagged drives
only.
"""

from predrain.models.forecast.explanations.facts import FACTS, compute_failure_shares, format_probability
from predrain.models.forecast.explanations.reasons import (
    CODES,
    Explanation,
    describe_beside_symptoms,
    explain_forecasts,
)

__all__ = [
    "CODES",
    "FACTS",
    "Explanation",
    "compute_failure_shares",
    "describe_beside_symptoms",
    "explain_forecasts",
    "format_probability",
]
