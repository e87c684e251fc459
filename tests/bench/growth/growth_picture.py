"""The picture: one line a measure over the number of disks, both axes logarithmic, each bend marked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.growth.measures import (
    MEASURES,
    GrowthMeasure,
    GrowthSeries,
    SizeFigures,
    find_bend,
    list_points,
)

_COLOURS = {GrowthSeries.ONE_PROCESS: "#0f766e", GrowthSeries.TWO_WORKERS: "#1d4ed8"}
_INK, _GRID, _GOAL = "#1f2937", "#e5e7eb", "#b91c1c"
_COLUMNS, _PANEL_INCHES = 3, (3.6, 2.1)


def draw_growth(found: Sequence[SizeFigures], into: Path) -> None:
    """Write a PNG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "font.size": 8.0,
        "text.color": _INK,
        "axes.edgecolor": _GRID,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": _GRID,
    }
    rows = -(-(len(MEASURES) + 1) // _COLUMNS)
    size = _PANEL_INCHES[0] * _COLUMNS, _PANEL_INCHES[1] * rows
    with mpl.rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(rows, _COLUMNS).flat
        for measure in MEASURES:
            _draw_panel(next(panels), measure, found)
        legend = next(panels)
        for series, colour in _COLOURS.items():
            legend.plot([], [], "o-", color=colour, label=series.value)
        legend.plot([], [], "_", color=_GOAL, markersize=12, label="the most that the goal allows")
        legend.plot([], [], "o", color=_INK, markerfacecolor="none", markersize=11, label="the sharpest bend")
        legend.legend(frameon=False, loc="center")
        legend.axis("off")
        for unused in panels:
            unused.axis("off")
        into.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(into, dpi=110)


def _draw_panel(panel: Any, measure: GrowthMeasure, found: Sequence[SizeFigures]) -> None:
    bends = list[str]()
    for series, colour in _COLOURS.items():
        points = [(disks, value) for disks, value in list_points(found, series, measure.name) if value > 0]
        if not points:
            continue
        panel.plot(*zip(*points, strict=True), "o-", color=colour, markersize=3, linewidth=1.2)
        goals = [
            (disks, goal) for disks, _ in points if (goal := measure.find_goal(series, disks)) is not None
        ]
        for disks, goal in goals:
            panel.plot([disks], [goal], "_", color=_GOAL, markersize=12)
        if (bend := find_bend(points)) is not None:
            panel.plot(
                [bend.disks],
                [dict(points)[bend.disks]],
                "o",
                color=colour,
                markerfacecolor="none",
                markersize=11,
            )
            bends.append(f"bends at {bend.disks:,} disks")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_title(f"{measure.label}, {measure.unit}", fontsize=8, loc="left")
    panel.set_xlabel("; ".join(bends) if bends else "disks")
