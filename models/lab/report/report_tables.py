"""The tables of one fleet as texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from predrain.models.evaluate.censoring_weights import EVIDENCE
from predrain.models.evaluate.cohort import ALARMS
from predrain.models.evaluate.expectancy_scores import AIMS
from predrain.models.lab.backtest.backtest_plan import FleetTrial
from predrain.models.lab.report.report_texts import (
    NO_EVIDENCE,
    format_interval,
    format_long_date,
    format_percent,
    format_share,
)


@dataclass(frozen=True, slots=True)
class TableText:
    """A table of texts, for the page and the terminal. The first cell of a row names the row."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def tabulate_ranking(fleet: FleetTrial) -> TableText:
    """Tabulate recall and PR-AUC of all forecasters."""
    return TableText(
        "All forecasters, at the same false-alarm rates",
        (
            "",
            "recall at 0.1 %",
            "recall at 1 %",
            "PR-AUC",
            "median lead at 1 %",
            "expected / observed",
            "Brier skill",
        ),
        [
            (
                judged.name,
                format_share(judged.figures["recall_at_0.1pct"]),
                format_share(judged.figures["recall_at_1pct"]),
                format_interval(judged.figures["pr_auc"]),
                f"{judged.figures['lead_p50_days_at_1pct'].value:.0f} d",
                *(
                    format_interval(judged.figures[name], digits) if name in judged.figures else "ranks only"
                    for name, digits in (("expected_over_observed_30d", 2), ("brier_skill_30d", 3))
                ),
            )
            for judged in fleet.report.judged
        ],
    )


def tabulate_own_alarms(fleet: FleetTrial) -> TableText:
    """Tabulate the recall of each forecaster at the rate at which it raises its own alarm."""
    rows = [
        (judged.name, word if word == ALARMS[-1] else f"{word} or worse",
         format_share(judged.figures[f"recall_at_own_{word}"]), format_share(judged.figures[f"far_at_own_{word}"], 2))
        for judged in fleet.report.judged
        for word in ALARMS[::-1]
        if f"recall_at_own_{word}" in judged.figures
    ]  # fmt: skip
    return TableText(
        "At their own alarms", ("", "alarm", "recall", "healthy drives flagged in 30 days"), rows
    )


def tabulate_differences(fleet: FleetTrial) -> TableText:
    """Tabulate differences on the same resamples."""
    names = {"recall_at_0.1pct": "recall at 0.1 %", "recall_at_1pct": "recall at 1 %", "pr_auc": "PR-AUC",
             "brier_skill_30d": "Brier skill"}  # fmt: skip
    rows = [
        (
            f"less {peer}",
            *(
                format_interval(differences[name], signed=True)
                + (" real" if differences[name].excludes_zero else "")
                if name in differences
                else "–"
                for name in names
            ),
        )
        for peer, differences in fleet.report.judged[0].less_baseline.items()
    ]
    return TableText("Ours less each, on the same resampled drives", ("", *names.values()), rows)


def tabulate_strata(fleet: FleetTrial, models: bool) -> TableText:
    """Tabulate recall and false alarms at the overall threshold by drive model, or by symptom and age."""
    ours = fleet.report.judged[0]
    kinds = {
        name: failures
        for name, failures in fleet.report.failures_by_stratum.items()
        if failures and name.startswith("model ") == models
    }
    rows = [
        (
            name.removeprefix("model "),
            f"{failures:,}",
            *(
                cell
                for point in ("0.1pct", "1pct")
                for cell in (
                    format_share(ours.figures[f"recall[{name}]_at_{point}"]),
                    format_percent(ours.false_alarms[point][name], 2),
                )
            ),
            "" if failures >= EVIDENCE else NO_EVIDENCE,
        )
        for name, failures in kinds.items()
    ]
    told = sum(failures for failures in kinds.values())
    caption = "By drive model" if models else "By symptom and age"
    if models and told < fleet.report.counts.failures:
        caption += f"; {fleet.report.counts.failures - told:,} failures are of models with fewer than 20"
    head = ("", "failures", "recall at 0.1 %", "flagged", "recall at 1 %", "flagged", "")
    return TableText(caption, head, rows)


def tabulate_life_expectancies(fleet: FleetTrial) -> TableText:
    """Tabulate the coverage of life expectancies with the numbers on which it is based."""
    ours = fleet.report.judged[0]
    rows = [
        (
            name.removesuffix("_inside").replace("_", " "),
            format_interval(ours.figures[name]),
            f"{AIMS[name.removesuffix('_inside')]:.2f}",
            f"{rests.rows:,}",
            f"{rests.drives:,}",
            f"{rests.events:,}",
            "" if rests.is_evidence else NO_EVIDENCE,
        )
        for name, rests in ours.life.items()
    ]
    return TableText(
        "Life expectancy inside the judged months", ("", "share", "aim", "rows", "drives", "deaths", ""), rows
    )


def tabulate_origins(fleet: FleetTrial) -> TableText:
    """Tabulate the splits, one row each."""
    rows = []
    for trial in fleet.origins:
        report = trial.report or fleet.report
        figures, failures = report.judged[0].figures, report.counts.failures
        rows.append(
            (
                f"known by {format_long_date(trial.origin.split)}",
                f"{format_long_date(trial.origin.first)} to {format_long_date(trial.origin.last)}",
                f"{trial.learned_from['drives']:,}",
                f"{trial.learned_from['deaths']:,}",
                f"{failures:,}" + ("" if failures >= EVIDENCE else f" ({NO_EVIDENCE})"),
                format_share(figures["recall_at_0.1pct"]),
                format_share(figures["recall_at_1pct"]),
                format_interval(figures["pr_auc"]),
                format_interval(figures["expected_over_observed_30d"], 2),
            )
        )
    head = ("", "landmarks", "drives learned", "deaths learned", "failures judged", "recall at 0.1 %", "recall at 1 %",
            "PR-AUC", "expected / observed")  # fmt: skip
    return TableText("Each split", head, rows)
