"""The table of a run, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tests.chaos.pace import LoadPace
from tests.chaos.schedule import RATES, Kind, Way
from tests.chaos.storm import Dealt
from tests.chaos.verdict import Finding, Verdict


@dataclass(frozen=True)
class Report:
    """One run. `whole_seconds` has start, end and comparison in it."""

    way: Way
    seed: int
    seconds: float
    whole_seconds: float
    drives: int
    dealt: Dealt
    pace: LoadPace
    verdict: Verdict

    def plain(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        injected = {
            kind.value: [
                {"at": round(at, 1), "seconds": round(seconds, 1)}
                for this, at, seconds in self.dealt.blows
                if this is kind
            ]
            for kind in RATES[self.way]
        }
        return {
            "way": self.way, "seed": self.seed, "seconds": self.seconds, "whole_seconds": round(self.whole_seconds, 1),
            "drives": self.drives, "injected": injected, "skipped": dict(self.dealt.skipped),
            "pace": asdict(self.pace),
            "is_load_complete": self.pace.is_load_complete, "has_kept_up": self.pace.has_kept_up,
            "counts": self.verdict.counts, "findings": dict(self.verdict.findings), "examples": self.verdict.examples,
            "notes": self.verdict.notes,
        }  # fmt: skip


def lines(report: Report) -> Iterator[str]:
    """Markdown."""
    yield f"Way {report.way}, seed {report.seed}, {report.drives:,} drives, {report.seconds / 60:.1f} minutes of chaos"
    yield f"({report.whole_seconds / 60:.1f} with start, end and comparison)."
    yield ""
    yield "| injected | times | at (s) | lasted (s) |"
    yield "|---|---|---|---|"
    for kind in RATES[report.way]:
        yield _line_of(kind, report)
    yield ""
    yield from _lines_of_pace(report.pace)
    yield ""
    yield "| came of it | |"
    yield "|---|---|"
    for measure, count in report.verdict.counts.items():
        yield f"| {measure} | {count:,} |"
    yield ""
    yield "| must not be | |"
    yield "|---|---|"
    for finding in Finding:
        if finding is not Finding.NOT_WALKED or report.verdict.findings[finding]:
            yield f"| {finding} | {report.verdict.findings[finding]:,} |"
    yield from (f"- {sentence}" for sentence in (*report.verdict.examples, *report.verdict.notes))


def _lines_of_pace(pace: LoadPace) -> Iterator[str]:
    yield "| pace | |"
    yield "|---|---|"
    yield f"| seconds under load | {pace.seconds:,.0f} |"
    yield f"| readings due from the load generators | {pace.due:,} ({pace.due / pace.seconds:,.0f} a second) |"
    yield f"| of these read | {pace.read:,} ({_describe_share(pace.is_load_complete)}) |"
    yield f"| readings accepted a second | {pace.accepted_per_second:,.0f} |"
    yield f"| readings scored a second | {pace.scored_per_second:,.0f} |"
    yield f"| not scored when the load ended | {pace.backlog:,} ({_describe_backlog(pace.has_kept_up)}) |"
    yield f"| of these not delivered | {pace.undelivered:,} |"
    yield f"| seconds until the last was scored | {pace.drain_seconds:,.0f} |"


def _describe_share(complete: bool) -> str:
    return "the whole load" if complete else "NOT THE WHOLE LOAD: this machine could not make or take it"


def _describe_backlog(kept_up: bool) -> str:
    return "kept up" if kept_up else "FELL BEHIND: the load was too much for this machine"


def _line_of(kind: Kind, report: Report) -> str:
    blows = [(at, seconds) for this, at, seconds in report.dealt.blows if this is kind]
    times = " ".join(f"{at:.0f}" for at, _ in blows)
    lasted = f"{min(s for _, s in blows):.1f}-{max(s for _, s in blows):.1f}" if blows else ""
    skipped = report.dealt.skipped[kind]
    return f"| {kind} | {len(blows)} | {times or ('not without root' if skipped else '')} | {lasted} |"
