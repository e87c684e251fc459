"""actions.worth: what a forecast is worth in bytes under a policy. In: forecasts day by day, fates, layout, policy.
Out: the shares of bytes that were moved in time and for nothing (Li 2016), with what other costs would give.

The decisions are those that run on a cluster (`actions.decide`); only the movement of bytes is a model. No I/O.
"""

from predrain.actions.worth.given import Fates, Forecasts, Layout, Notch, NothingToReplay, laid_out
from predrain.actions.worth.ladder import HERE, Rung, ladder, table
from predrain.actions.worth.replay import Drained, Replayed, replay
from predrain.actions.worth.tally import Interval, Worth, worth_of

__all__ = [
    "HERE",
    "Drained",
    "Fates",
    "Forecasts",
    "Interval",
    "Layout",
    "Notch",
    "NothingToReplay",
    "Replayed",
    "Rung",
    "Worth",
    "ladder",
    "laid_out",
    "replay",
    "table",
    "worth_of",
]
