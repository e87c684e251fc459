"""models.backtest: the recipe on trial. In: histories and splits. Out: a `Backtest`. No clock, no memory between runs.

At each split day the recipe is trained on what was known then, scores the weeks after an embargo from histories
without a failure column, and is judged beside its peers on the same drives and resamples. A file an idea: `splits`
(which days learn, which judge), `fleets` (which files belong together), `readings` (what a forecaster may see),
`origin` (one split), `left_out` (which drives are left out of the training and judged instead), `unseen` (each of
these sets tried), `run` (all of them, judged), `trial` (what is asked and answered).
"""

from predrain.models.backtest.fleets import BacktestFleet, fleets_of
from predrain.models.backtest.left_out import (
    LeaveOut,
    LeaveOutKind,
    LeftOutSet,
    UnknownLeaveOut,
    parse_leave_out,
)
from predrain.models.backtest.readings import without_fates
from predrain.models.backtest.run import NothingTried, backtest
from predrain.models.backtest.splits import Origin, origins_of
from predrain.models.backtest.trial import Backtest, BacktestPlan, FleetTrial, LeftOutTrial, OriginTrial

__all__ = [
    "Backtest",
    "BacktestFleet",
    "BacktestPlan",
    "FleetTrial",
    "LeaveOut",
    "LeaveOutKind",
    "LeftOutSet",
    "LeftOutTrial",
    "NothingTried",
    "Origin",
    "OriginTrial",
    "UnknownLeaveOut",
    "backtest",
    "fleets_of",
    "origins_of",
    "parse_leave_out",
    "without_fates",
]
