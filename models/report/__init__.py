"""models.report: a backtest as one page for people. In: a `Backtest`, bytes by notch. Out: HTML, whole in one file.

Pictures are inline SVG, colours follow the reader's light or dark, nothing is fetched and no script runs. A file an
idea: `words` (sentences and numbers), `tables`, `ink` (how a picture is drawn), `charts` (the pictures), `left_out`
(drives that were not learned from), `page`.
"""

from models.report.ink import NoPlotting, ready
from models.report.left_out import left_out_lines
from models.report.page import Bytes, page

__all__ = ["Bytes", "NoPlotting", "left_out_lines", "page", "ready"]
