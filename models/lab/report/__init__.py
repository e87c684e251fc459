"""models.lab.report: a backtest as one page for people. In: a `Backtest`, bytes by cost. Out: HTML in a single file.

Pictures are inline SVG and their colours follow the reader's light or dark mode. The page fetches nothing and runs
no script.

`report_texts` makes sentences and numbers, and `report_tables` tables. `svg_drawing` draws a picture, and `charts` has
all of them. `left_out_rows` shows drives that were not learned from, and `landmark_step_rows` other landmarks over the
same days. `report_page` puts the parts together, and the templates `*.html.jinja` lay them out.
"""

from predrain.models.lab.report.report_page import Bytes, render_backtest_page
from predrain.models.lab.report.svg_drawing import NoPlotting, require_report_packages
from predrain.models.lab.report.terminal_tables import further_lines

__all__ = ["Bytes", "NoPlotting", "further_lines", "render_backtest_page", "require_report_packages"]
