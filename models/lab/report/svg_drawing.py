"""Drawing of a picture: Matplotlib to SVG text whose colours are the page's variables, so that they change with the
page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from predrain.data.refusal import Refusal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK: Final = "#010101"
MUTED: Final = "#010102"
GRID: Final = "#010103"
SERIES: Final = ("#020200", "#020201", "#020202", "#020203", "#020204", "#020205")
"""The colours of predrain, then of the peers."""
VARIABLES: Final = {INK: "--ink", MUTED: "--muted", GRID: "--grid"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES)
}
"""Colours that no drawing uses by chance -> the variables of style.css that replace them."""


class NoPlotting(Refusal):
    """A package that draws or lays out the report is not installed."""


def require_report_packages() -> None:
    """Check that pictures can be drawn and templates be filled. Raises NoPlotting."""
    if find_spec("matplotlib") is None or find_spec("jinja2") is None:
        raise NoPlotting(
            "The report needs Matplotlib and Jinja2: pip install 'predrain[report]', or leave out --out."
        )


def draw_svg(draw: Callable[[Axes], None], title: str, *, width: float = 5.2, height: float = 3.4) -> str:
    """Return the SVG text of one picture. width, height: inches at 72 points."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": title,
        "font.family": "sans-serif",
        "font.size": 9.0,
        "text.color": INK,
        "axes.labelcolor": MUTED,
        "axes.edgecolor": GRID,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.minor.visible": False,
        "ytick.minor.visible": False,
        "legend.frameon": False,
        "legend.fontsize": 8.0,
        "legend.labelcolor": INK,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.patch.set_alpha(0.0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0.0)
        axes.set_axisbelow(True)
        draw(axes)
        axes.minorticks_off()
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return _of_the_page(text.getvalue(), title)


def _of_the_page(svg: str, title: str) -> str:
    """Adapt SVG text to the page: no prolog, no fixed size, a name for screen readers, and the page's colours and
    fonts."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg))
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return re.sub(r'font-family: [^;"]*', "font-family: var(--letters)", svg)
