"""cost_benefit: the value of a forecast in bytes under a policy.

In: forecasts day by day, the drives' outcomes, layout, policy. Out: the shares of bytes that were moved in
time and for nothing (Li 2016), and the result at other costs. The decisions are those that run on a cluster
(`actions.engine.decision`); only the movement of bytes is a model. No I/O.
"""

from predrain.actions.cost_benefit.byte_counts import CostBenefit, FigureInterval, worth_of
from predrain.actions.cost_benefit.cost_ladder import (
    HERE,
    FailureCostRow,
    compare_failure_costs,
    format_cost_table,
)
from predrain.actions.cost_benefit.drain_replay import ReplayedDrain, ReplayResult, replay_forecast_days
from predrain.actions.cost_benefit.replay_input import (
    DailyForecasts,
    DriveFates,
    DriveLayout,
    NoForecastToReplay,
    Notch,
    laid_out,
)

__all__ = [
    "HERE",
    "CostBenefit",
    "DailyForecasts",
    "DriveFates",
    "DriveLayout",
    "FailureCostRow",
    "FigureInterval",
    "NoForecastToReplay",
    "Notch",
    "ReplayResult",
    "ReplayedDrain",
    "compare_failure_costs",
    "format_cost_table",
    "laid_out",
    "replay_forecast_days",
    "worth_of",
]
