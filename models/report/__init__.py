"""models.report: a backtest as one page for people. In: a `Backtest`, bytes by cost. Out: HTML, whole in one file.

Pictures are inline SVG, colours follow the reader's light or dark, nothing is fetched and no script runs. A file an
idea: `words` (sentences and numbers), `tables`, `ink` (how a picture is drawn), `charts` (the pictures), `left_out`
(drives that were not learned from), `steps` (other landmarks over the same days), `page`, `terminal`.
"""

from predrain.models.report.ink import NoPlotting, ready
from predrain.models.report.page import Bytes, page
from predrain.models.report.terminal import further_lines

__all__ = ["Bytes", "NoPlotting", "further_lines", "page", "ready"]
