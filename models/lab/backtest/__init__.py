"""models.lab.backtest: a trial of the recipe. In: histories and splits. Out: a `Backtest`. No clock, no memory
between runs.

At each split day the recipe is trained on the data known by that day. It scores the weeks after an embargo
from histories without a failure column. It is judged beside its peers on the same drives and resamples.

The files: `splits` says which days are learned from and which are judged. `fleets` says which files belong
together. `readings` limits what a forecaster may see. `origin` tries one split. `left_out` says which drives
are left out of the training and judged instead, and `unseen` tries each of these sets. `run` tries and judges
all of them. `trial` holds the plan and the results.
"""

from predrain.models.lab.backtest.backtest_plan import (
    Backtest,
    BacktestPlan,
    FleetTrial,
    LeftOutTrial,
    OriginTrial,
)
from predrain.models.lab.backtest.backtest_run import NothingTried, run_backtest
from predrain.models.lab.backtest.file_groups import BacktestFleet, fleets_of
from predrain.models.lab.backtest.judged_readings import without_fates
from predrain.models.lab.backtest.left_out_drives import (
    LeaveOut,
    LeaveOutKind,
    LeftOutSet,
    UnknownLeaveOut,
    parse_leave_out,
)
from predrain.models.lab.backtest.rolling_origins import Origin, origins_of

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
    "fleets_of",
    "origins_of",
    "parse_leave_out",
    "run_backtest",
    "without_fates",
]
