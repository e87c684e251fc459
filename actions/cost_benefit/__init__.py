"""cost_benefit: what a forecast is worth in bytes under a policy. In: forecasts day by day, fates, layout, policy.
Out: the shares of bytes that were moved in time and for nothing (Li 2016), with what other costs would give.

The decisions are those that run on a cluster (`actions.engine.decide`); only the movement of bytes is a model. No I/O.
"""

from predrain.actions.cost_benefit.given import (
    DailyForecasts,
    Fates,
    Layout,
    NoForecastToReplay,
    Notch,
    laid_out,
)
from predrain.actions.cost_benefit.ladder import HERE, Rung, ladder, table
from predrain.actions.cost_benefit.replay import Drained, ReplayResult, replay
from predrain.actions.cost_benefit.tally import FigureInterval, Worth, worth_of

__all__ = [
    "HERE",
    "DailyForecasts",
    "Drained",
    "Fates",
    "FigureInterval",
    "Layout",
    "NoForecastToReplay",
    "Notch",
    "ReplayResult",
    "Rung",
    "Worth",
    "ladder",
    "laid_out",
    "replay",
    "table",
    "worth_of",
]
