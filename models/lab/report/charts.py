"""The pictures of one fleet. Each is drawn from figures and curves that are in the JSON, too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from predrain.models.evaluate.forecast_scores import NAMED
from predrain.models.lab.backtest.backtest_plan import FleetTrial
from predrain.models.lab.report.svg_drawing import GRID, INK, MUTED, SERIES, draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIFE = (("life_below_p10", 0.1), ("life_below_p50", 0.5), ("life_p10_to_p90", 0.8))


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture with its title and caption."""

    title: str
    caption: str
    svg: str


def draw_charts(fleet: FleetTrial) -> Iterator[Chart]:
    """Yield the pictures in the order of the page."""
    shown = shown_peers(fleet)
    yield Chart(
        "Recall against the false-alarm budget",
        "Share of the failures announced in their last 30 days, by how many healthy drives are flagged in 30 days. "
        "Bars are 95 % intervals; squares are rules at the rate at which they raise their own alarm.",
        draw_svg(
            lambda axes: _plot_alarm_budget(axes, fleet, shown), "Recall against the false-alarm budget"
        ),
    )
    yield Chart(
        "Precision and recall",
        "Over rows, a drive on a landmark; further up and right is better. The dotted line is the base rate: "
        "what chance gives.",
        draw_svg(lambda axes: _plot_precision_recall(axes, fleet, shown), "Precision and recall"),
    )
    yield Chart(
        "Do the chances mean what they say?",
        "Forecast chance to fail against what came, by horizon; on the line is right. A larger dot holds more rows.",
        draw_svg(lambda axes: _plot_reliability(axes, fleet), "Reliability"),
    )
    yield Chart(
        "How far ahead?",
        "Failures announced at 1 % of healthy drives flagged, by days from the first flag to death.",
        draw_svg(lambda axes: _plot_lead_times(axes, fleet), "Lead time"),
    )
    yield Chart(
        "Does life expectancy hold?",
        "Share of drives whose life ended by the p10, by the p50, and between p10 and p90, corrected for removals; "
        "ticks are the aims. Hollow: fewer than 30 deaths, no evidence.",
        draw_svg(lambda axes: _plot_life_coverage(axes, fleet), "Calibration of life expectancy", height=2.4),
    )
    if fleet.report.judged[0].less_baseline:
        yield Chart(
            "Ours less each peer",
            "Recall at 1 % of healthy drives flagged, in percentage points, on the same resampled drives. "
            "An interval that leaves out 0 is a real difference.",
            draw_svg(
                lambda axes: _plot_differences(axes, fleet),
                "Paired differences",
                height=1.2 + 0.28 * len(fleet.report.judged[0].less_baseline),
            ),
        )


def shown_peers(fleet: FleetTrial) -> list[str]:
    """Return predrain and the five peers with the largest PR-AUC. More lines could not be distinguished."""
    ours, *peers = fleet.report.judged
    best = sorted(peers, key=lambda judged: -judged.figures["pr_auc"].value)
    return [ours.name, *(judged.name for judged in best[: len(SERIES) - 1])]


def bytes_chart(labels: Sequence[str], nothing: Sequence[float], safe: Sequence[float], chosen: int) -> str:
    """Draw bytes safe in time over bytes moved for nothing, in per cent, with a dot for each cost of a failure."""

    def draw(axes: Axes) -> None:
        axes.scatter(nothing, safe, s=20, color=MUTED)
        axes.scatter(nothing[chosen : chosen + 1], safe[chosen : chosen + 1], s=56, color=SERIES[0], zorder=3)
        taken = dict[tuple[float, float], list[str]]()
        for x, y, label in zip(nothing, safe, labels, strict=True):
            taken.setdefault((round(x, 3), round(y, 1)), []).append(label)
        for number, (spot, names) in enumerate(sorted(taken.items())):
            above = 5 if number % 2 else -10
            axes.annotate(", ".join(names), spot, xytext=(5, above), textcoords="offset points", fontsize=7.5)
        axes.set_xlabel("bytes moved for nothing in 30 days, % of those on living drives")
        axes.set_ylabel("failing bytes safe in time, %")
        axes.set_xlim(-0.03 * max(nothing), 1.2 * max(nothing) + 0.01)
        axes.margins(y=0.12)

    return draw_svg(draw, "Worth in bytes")


def _plot_lines(axes: Axes, curves: Sequence[tuple[str, Sequence[float], Sequence[float]]]) -> None:
    """Plot curves in per cent. The first one, predrain's, is drawn last so that it lies on top."""
    for number, (name, across, up) in reversed(list(enumerate(curves))):
        axes.plot(
            [100 * x for x in across],
            [100 * y for y in up],
            color=SERIES[number],
            linewidth=2.2 if number == 0 else 1.2,
            label=name,
        )


def _plot_alarm_budget(axes: Axes, fleet: FleetTrial, shown: Sequence[str]) -> None:
    _plot_lines(
        axes, [(name, fleet.curves[name].budget, fleet.curves[name].recall_at_budget) for name in shown]
    )
    ours = fleet.report.judged[0]
    for rate, name in NAMED.items():
        figure = ours.figures[f"recall_at_{name}"]
        axes.plot([100 * rate] * 2, [100 * figure.low, 100 * figure.high], color=SERIES[0], linewidth=1.4)
    for judged in fleet.report.judged[1:]:
        if "far_at_own_bad" in judged.figures:
            far, recall = (judged.figures[f"{what}_at_own_bad"].value for what in ("far", "recall"))
            if 1e-4 <= far <= 0.1:
                axes.scatter([100 * far], [100 * recall], marker="s", s=14, color=INK, zorder=3)
                axes.annotate(
                    judged.name,
                    (100 * far, 100 * recall),
                    xytext=(4, -8),
                    textcoords="offset points",
                    fontsize=7,
                )
    axes.set_xscale("log")
    axes.set_xticks([0.01, 0.1, 1, 10], ["0.01 %", "0.1 %", "1 %", "10 %"])
    axes.set_xlabel("healthy drives flagged in 30 days")
    axes.set_ylabel("failures announced, %")
    axes.set_ylim(bottom=0)
    _add_legend(axes, "upper left")


def _plot_precision_recall(axes: Axes, fleet: FleetTrial, shown: Sequence[str]) -> None:
    _plot_lines(axes, [(name, fleet.curves[name].recall, fleet.curves[name].precision) for name in shown])
    counts = fleet.report.counts
    axes.axhline(100 * counts.positive_rows / counts.rows, color=MUTED, linewidth=1, linestyle=":")
    axes.set_xlabel("positive rows found, %")
    axes.set_ylabel("flagged rows that fail, %")
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0)
    _add_legend(axes, "upper right")


def _plot_reliability(axes: Axes, fleet: FleetTrial) -> None:
    low = 1e-5
    axes.plot([low, 1], [low, 1], color=MUTED, linewidth=1, linestyle=":")
    for number, (horizon, bins) in enumerate(
        sorted(fleet.report.judged[0].reliability.items(), reverse=True)
    ):
        seen = [one for one in bins if one.observed > 0]
        axes.plot(
            [one.mean_p for one in seen], [one.observed for one in seen], color=SERIES[number], linewidth=1
        )
        axes.scatter(
            [one.mean_p for one in seen],
            [one.observed for one in seen],
            s=[6 + 6 * math.log10(one.rows) for one in seen],
            color=SERIES[number],
            label=f"{horizon} days",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks, names = [1e-4, 1e-3, 1e-2, 1e-1, 1], ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
    axes.set_xlim(low, 1)
    axes.set_ylim(low, 1)
    axes.set_xlabel("forecast")
    axes.set_ylabel("came")
    _add_legend(axes, "upper left")


def _plot_lead_times(axes: Axes, fleet: FleetTrial) -> None:
    leads = fleet.curves[fleet.report.judged[0].name].leads
    axes.hist(leads, bins=[0.5 + 3 * step for step in range(11)], color=SERIES[0], rwidth=0.9)
    axes.set_xlim(30.5, 0.5)
    axes.set_xlabel("days before death")
    axes.set_ylabel("failures")
    axes.locator_params(axis="y", integer=True)
    axes.grid(visible=False, axis="x")


def _plot_life_coverage(axes: Axes, fleet: FleetTrial) -> None:
    ours = fleet.report.judged[0]
    for place, (name, aim) in enumerate(LIFE):
        axes.plot([aim, aim], [place - 0.3, place + 0.3], color=MUTED, linewidth=2)
        figure, rests = ours.figures.get(f"{name}_inside"), ours.life.get(f"{name}_inside")
        if figure is None or rests is None or math.isnan(figure.value):
            axes.annotate("cannot be judged on these months", (aim, place), xytext=(6, -3),
                          textcoords="offset points", fontsize=7.5, color=MUTED)  # fmt: skip
            continue
        axes.plot([figure.low, figure.high], [place, place], color=SERIES[0], linewidth=1.4)
        face = SERIES[0] if rests.is_evidence else "none"
        axes.scatter([figure.value], [place], s=36, facecolors=face, edgecolors=SERIES[0], zorder=3)
    axes.set_yticks(range(len(LIFE)), ["by p10", "by p50", "p10 to p90"])
    axes.set_ylim(len(LIFE) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of lives")
    axes.grid(visible=False, axis="y")


def _plot_differences(axes: Axes, fleet: FleetTrial) -> None:
    ours = fleet.report.judged[0]
    axes.axvline(0, color=GRID, linewidth=1.4)
    for place, differences in enumerate(ours.less_baseline.values()):
        figure = differences["recall_at_1pct"]
        colour = SERIES[0] if figure.excludes_zero else MUTED
        axes.plot([100 * figure.low, 100 * figure.high], [place, place], color=colour, linewidth=1.4)
        axes.scatter([100 * figure.value], [place], s=26, color=colour, zorder=3)
    axes.set_yticks(range(len(ours.less_baseline)), list(ours.less_baseline))
    axes.set_ylim(len(ours.less_baseline) - 0.5, -0.5)
    axes.set_xlabel("percentage points")
    axes.grid(visible=False, axis="y")


def _add_legend(axes: Axes, where: Literal["upper left", "upper right"]) -> None:
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc=where)
