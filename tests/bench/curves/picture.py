"""The picture: normal, failed, predicted (with and without fast maps), and what most tools do instead: out at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Seconds = Sequence[tuple[float, int, float]]
"""Second, operations that came back in it, the worst of those due in it in ms."""

_COLOURS = {
    "normal": "#6b7280",
    "predicted": "#0f766e",
    "fast maps": "#1d4ed8",
    "failed": "#b91c1c",
    "out in one step": "#b45309",
}
_INK, _GRID = "#1f2937", "#e5e7eb"


def draw(curves: Mapping[str, Seconds], offered: float, words: str, into: Path) -> None:
    """Write a PNG: the share of what was asked that was served, and each second's worst operation."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "font.size": 9.0,
        "text.color": _INK,
        "axes.edgecolor": _GRID,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": _GRID,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(8.0, 5.0), layout="constrained")
        served, worst = figure.subplots(2, 1, sharex=True)
        for name, seconds in curves.items():
            x = [second for second, _, _ in seconds]
            style = {"color": _COLOURS[name], "label": name, "linewidth": 1.4}
            served.plot(x, [count / offered for _, count, _ in _smoothed(seconds)], **style)
            worst.plot(x, [max(ms, 1.0) for _, _, ms in seconds], **style)
        served.set_ylim(0, 1.6)
        served.set_ylabel("operations served of those due\n(mean of 3 s)")
        served.set_title(words, fontsize=9, loc="left")
        worst.set_yscale("log")
        worst.set_ylabel("worst operation due\nin each second, ms")
        worst.set_xlabel("seconds since it began (hold and drain windows, one after the other)")
        served.legend(frameon=False, ncols=len(curves), loc="lower right")
        figure.savefig(into, dpi=130)


def _smoothed(seconds: Seconds) -> list[tuple[float, float, float]]:
    found = []
    for at, (second, _, ms) in enumerate(seconds):
        near = [count for _, count, _ in seconds[max(0, at - 1) : at + 2]]
        found.append((second, sum(near) / len(near), ms))
    return found
