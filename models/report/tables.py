"""The tables of one fleet as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from predrain.models.backtest.trial import FleetTrial
from predrain.models.evaluate.cohort import ALARMS
from predrain.models.evaluate.expectancy import AIMS
from predrain.models.evaluate.life import EVIDENCE
from predrain.models.report.words import NO_EVIDENCE, day, percent, plain, share


@dataclass(frozen=True, slots=True)
class TableText:
    """A table in words, for the page and the terminal: the first cell of a row names it."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Words in the first column, figures in the others; cells are escaped."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def ranking(fleet: FleetTrial) -> str:
    """Recall and PR-AUC of all."""
    return table(
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
                share(judged.figures["recall_at_0.1pct"]),
                share(judged.figures["recall_at_1pct"]),
                plain(judged.figures["pr_auc"]),
                f"{judged.figures['lead_p50_days_at_1pct'].value:.0f} d",
                *(
                    plain(judged.figures[name], digits) if name in judged.figures else "ranks only"
                    for name, digits in (("expected_over_observed_30d", 2), ("brier_skill_30d", 3))
                ),
            )
            for judged in fleet.report.judged
        ],
    )


def own_alarms(fleet: FleetTrial) -> str:
    """What each catches at the rate at which it raises its own alarm."""
    rows = [
        (judged.name, word if word == ALARMS[-1] else f"{word} or worse",
         share(judged.figures[f"recall_at_own_{word}"]), share(judged.figures[f"far_at_own_{word}"], 2))
        for judged in fleet.report.judged
        for word in ALARMS[::-1]
        if f"recall_at_own_{word}" in judged.figures
    ]  # fmt: skip
    return table("At their own alarms", ("", "alarm", "recall", "healthy drives flagged in 30 days"), rows)


def paired(fleet: FleetTrial) -> str:
    """Differences on the same resamples."""
    names = {"recall_at_0.1pct": "recall at 0.1 %", "recall_at_1pct": "recall at 1 %", "pr_auc": "PR-AUC",
             "brier_skill_30d": "Brier skill"}  # fmt: skip
    rows = [
        (
            f"less {peer}",
            *(
                plain(differences[name], signed=True) + (" real" if differences[name].excludes_zero else "")
                if name in differences
                else "–"
                for name in names
            ),
        )
        for peer, differences in fleet.report.judged[0].less_baseline.items()
    ]
    return table("Ours less each, on the same resampled drives", ("", *names.values()), rows)


def strata(fleet: FleetTrial, models: bool) -> str:
    """Recall and false alarms at the overall threshold by drive model, or by symptom and age."""
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
                    share(ours.figures[f"recall[{name}]_at_{point}"]),
                    percent(ours.false_alarms[point][name], 2),
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
    return table(caption, head, rows)


def life(fleet: FleetTrial) -> str:
    """Coverage of life expectancies with what it rests on."""
    ours = fleet.report.judged[0]
    rows = [
        (
            name.removesuffix("_inside").replace("_", " "),
            plain(ours.figures[name]),
            f"{AIMS[name.removesuffix('_inside')]:.2f}",
            f"{rests.rows:,}",
            f"{rests.drives:,}",
            f"{rests.events:,}",
            "" if rests.is_evidence else NO_EVIDENCE,
        )
        for name, rests in ours.life.items()
    ]
    return table(
        "Life expectancy inside the judged months", ("", "share", "aim", "rows", "drives", "deaths", ""), rows
    )


def origins(fleet: FleetTrial) -> str:
    """One line a split."""
    rows = []
    for trial in fleet.origins:
        report = trial.report or fleet.report
        figures, failures = report.judged[0].figures, report.counts.failures
        rows.append(
            (
                f"known by {day(trial.origin.split)}",
                f"{day(trial.origin.first)} to {day(trial.origin.last)}",
                f"{trial.learned_from['drives']:,}",
                f"{trial.learned_from['deaths']:,}",
                f"{failures:,}" + ("" if failures >= EVIDENCE else f" ({NO_EVIDENCE})"),
                share(figures["recall_at_0.1pct"]),
                share(figures["recall_at_1pct"]),
                plain(figures["pr_auc"]),
                plain(figures["expected_over_observed_30d"], 2),
            )
        )
    head = ("", "landmarks", "drives learned", "deaths learned", "failures judged", "recall at 0.1 %", "recall at 1 %",
            "PR-AUC", "expected / observed")  # fmt: skip
    return table("Each split", head, rows)
