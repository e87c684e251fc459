"""The page: a summary first, then pictures, then tables, then what it all rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from predrain.models.backtest.trial import Backtest, BacktestPlan, FleetTrial
from predrain.models.report import tables
from predrain.models.report.charts import bytes_chart, charts
from predrain.models.report.left_out import left_out_tables
from predrain.models.report.steps import step_tables
from predrain.models.report.words import ahead, day, summary


@dataclass(frozen=True, slots=True)
class Bytes:
    """What the forecast is worth under a drain policy, a line for each cost of a failure."""

    head: str
    """One sentence: what was replayed."""
    settings: Sequence[str]
    safe: Sequence[float]
    """Share of the failing drives' bytes that was safe in time, in [0, 1]; NaN is unknown."""
    nothing: Sequence[float]
    """Bytes moved for nothing, a byte on living drives and 30 days; NaN is unknown."""
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    """(settings, columns) for people."""
    chosen: int
    """Which setting is the policy's own."""


def page(backtest: Backtest, worth: Mapping[str, Bytes]) -> str:
    """The whole report as HTML. worth: by fleet's name, where a policy was replayed."""
    style = files("predrain.models.report").joinpath("style.css").read_text(encoding="utf-8")
    body = "".join(_fleet(fleet, backtest.plan, worth.get(fleet.fleet.name)) for fleet in backtest.fleets)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>predrain: a backtest</title><style>{style}</style></head><body><main>"
        f"<header><h1>The forecast on trial</h1>{_paragraphs([_asked(backtest), ahead(backtest)])}"
        f"{_list(backtest.left_out)}</header>{body}</main></body></html>\n"
    )


def _asked(backtest: Backtest) -> str:
    plan = backtest.plan
    wait = f"{plan.embargo} days of embargo, then " if plan.embargo else ""
    return (
        f"At each split the recipe was trained on what was known on that day; {wait}{plan.judge_days} days were "
        f"judged, a landmark every {plan.every} days, on histories that do not tell who failed. Intervals are "
        f"2.5 to 97.5 % of {plan.resamples:,} resamples of the drives (seed {plan.seed})."
    )


def _fleet(fleet: FleetTrial, plan: BacktestPlan, worth: Bytes | None) -> str:
    counts = fleet.report.counts
    first, *others = summary(fleet)
    title = ", ".join(path.stem for path in fleet.fleet.readings)
    rests = (
        f"{counts.drives:,} drives at risk on {counts.landmarks} landmarks from {day(counts.first_landmark)} to "
        f"{day(counts.last_landmark)}; {counts.rows:,} rows with a known fate, {counts.positive_rows:,} of them of "
        f"drives about to fail; {counts.windows:,} healthy windows; {counts.censored:,} rows censored."
    )
    pictures = "".join(_figure(chart.title, chart.svg, chart.caption) for chart in charts(fleet))
    shown = [tables.ranking(fleet), tables.paired(fleet), tables.own_alarms(fleet), tables.origins(fleet),
             tables.strata(fleet, models=True), tables.strata(fleet, models=False), tables.life(fleet)]  # fmt: skip
    steps = "".join(tables.table(one.caption, one.head, one.rows) for one in step_tables(fleet, plan))
    unseen = "".join(tables.table(one.caption, one.head, one.rows) for one in left_out_tables(fleet))
    notes = [f"{peer}: {note}." for peer, note in fleet.notes.items()]
    return (
        f'<section><h2>{escape(title)}</h2><p class="lead">{escape(first)}</p>{_paragraphs(others)}'
        f"{_worth(worth) if worth else ''}"
        f'<div class="pictures">{pictures}</div>{"".join(shown)}{steps}'
        f"{f'<h3>On drives that it has not learned from</h3>{unseen}' if unseen else ''}"
        f"<h3>What it rests on</h3><p>{escape(rests)}</p>{_list(notes)}</section>"
    )


def _worth(worth: Bytes) -> str:
    known = [
        n
        for n in range(len(worth.settings))
        if worth.safe[n] == worth.safe[n] and worth.nothing[n] == worth.nothing[n]
    ]
    picture = ""
    if worth.chosen in known:
        svg = bytes_chart(
            [_short(worth.settings[n]) for n in known],
            [100 * worth.nothing[n] for n in known],
            [100 * worth.safe[n] for n in known],
            known.index(worth.chosen),
        )
        caption = (
            "One dot for each cost of a failure: a quarter to four times of what the policy sets (the large dot is as "
            "it is set). Up and left is better."
        )
        picture = (
            f'<div class="pictures">{_figure("What a cost of a failure brings about", svg, caption)}</div>'
        )
    rows = [(name, *cells) for name, cells in zip(worth.settings, worth.cells, strict=True)]
    return (
        f"<h3>Worth in bytes</h3><p>{escape(worth.head)}</p>{picture}"
        f"{tables.table('By cost of a failure', ('', *worth.columns), rows)}"
    )


def _short(notch: str) -> str:
    return notch.removeprefix("thresholds ").removesuffix(" of healthy windows")


def _figure(title: str, svg: str, caption: str) -> str:
    return f"<figure><h3>{escape(title)}</h3>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _paragraphs(lines: Sequence[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""
