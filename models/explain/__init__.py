"""Why a forecast is what it is, what to do about it, and what would clear it.

In: a bundle's forecast with the features behind it. Out: one `Explanation` a drive, in an operator's words with
numbers and dates. What costs time (contributions, forecasts of a quieter future) is done for flagged drives only.
"""

from predrain.models.explain.facts import FACTS, percent, shares
from predrain.models.explain.reasons import CODES, Explanation, describe_beside_symptoms, explained

__all__ = ["CODES", "FACTS", "Explanation", "describe_beside_symptoms", "explained", "percent", "shares"]
