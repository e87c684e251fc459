"""How often the rules flag drives in service, and how often drives that failed: `make bench-rules`.

Hard disks are judged as those that the forecast knows nothing of; what the rules add to a forecast that knows them is
measured on the histories (tests/bench/rules_contribution.py).

In service: an upper bound of false alarms, since some flagged drives are failing. A fleet's drive is seen once, so
signs that need a rise cannot show there; how often those flag is bounded by failing drives long before their end.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from predrain.data.outlook import Status
from predrain.data.reading import Reading
from predrain.features.drive_state import observe_reading
from predrain.models.forecast.rules import RuleVerdict, judge_by_rules, judge_symptoms
from tests.bench import evidence, rules_contribution
from tests.bench.shares import Share
from tests.conftest import data_folder

DAYS_BEFORE = (29, 21, 14, 7, 3, 2, 1, 0)
SCORED = "score 0.2 or more"
EARLY = 8
"""Days before its ticket from which on a failing drive's flag counts as early."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rules", description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    folder = data_folder()
    if folder is None:
        print("Set PREDRAIN_DATA to the folder that holds evidence/.", file=sys.stderr)
        return 1
    console = Console(width=None if sys.stdout.isatty() else 120)
    for title, shares in chain(measured(folder / "evidence"), rules_contribution.measured(folder / "drives")):
        if options.json:
            for share in shares:
                low, high = share.interval
                print(json.dumps({"table": title, **asdict(share), "low": low, "high": high}))
        else:
            console.print(_table(title, shares))
    return 0


def measured(folder: Path) -> Iterator[tuple[str, list[Share]]]:
    """Tables with their titles, as they are done."""
    for title, drives in (
        ("SATA hard disks in service, not forecast", evidence.hard_disks_in_service(folder)),
        ("NVMe in service", evidence.nvme_in_service(folder)),
        ("SATA SSDs in service", evidence.ssds_in_service(folder)),
        ("SATA SSDs at their trouble ticket, seen once", evidence.failed(folder)),
    ):
        print(f"judging {title}", file=sys.stderr, flush=True)
        yield title, _by_group(drives)
    print("judging 244 SSDs in their last 30 days", file=sys.stderr, flush=True)
    yield "244 SSDs of one model before their ticket, read daily", _before(folder)


def _by_group(drives: Iterable[tuple[str, Reading]]) -> list[Share]:
    """Return the shares of each group, by status and by the code of every sign that was reported."""
    of: Counter[str] = Counter()
    statuses: Counter[tuple[str, str]] = Counter()
    signs: Counter[tuple[str, str]] = Counter()
    for group, reading in drives:
        state = observe_reading(None, reading)
        verdict = judge_by_rules(state) or judge_symptoms(state)
        for counted in (group, "all"):
            of[counted] += 1
            if verdict is None:
                continue
            statuses[counted, f"status {verdict.status}"] += 1
            statuses[counted, SCORED] += verdict.score is not None and verdict.score >= 0.2
            signs.update((counted, code) for code in _codes(verdict))
    told = sorted({code for _, code in signs})
    return [
        Share(group, what, statuses[group, what], of[group])
        for group in sorted(of)
        for what in (*(f"status {status}" for status in (Status.BAD, Status.WARNING, Status.UNKNOWN)), SCORED)
    ] + [Share(group, code, signs[group, code], of[group]) for code in told for group in sorted(of)]


def _codes(verdict: RuleVerdict) -> set[str]:
    return {reason.code for reason in verdict.reasons} - {"no-sign", "nothing-reported"}


def _before(folder: Path) -> list[Share]:
    """Share flagged on a day and up to it, and of days that are too early to be meant."""
    flags = [_flags(days) for days in evidence.last_days(folder)]
    shares = [
        Share("that day" if only else "by then", f"{_worded(least)}, {before} d before", hits, len(flags))
        for least in (Status.WARNING, Status.BAD)
        for only in (True, False)
        for before in DAYS_BEFORE
        for hits in [sum(_reached(drive, least, before, only) for drive in flags)]
    ]
    for least in (Status.WARNING, Status.BAD):
        early = [_worse(status, least) for drive in flags for day, status in drive.items() if day >= EARLY]
        shares.append(
            Share("drive-days", f"{_worded(least)}, {EARLY} d or more before", sum(early), len(early))
        )
    return shares


def _flags(days: Iterable[tuple[int, Reading]]) -> dict[int, Status]:
    state, found = None, {}
    for before, reading in days:
        state = observe_reading(state, reading)
        verdict = judge_by_rules(state)
        assert verdict is not None
        found[before] = verdict.status
    return found


def _reached(drive: dict[int, Status], least: Status, before: int, only: bool) -> bool:
    return any(
        _worse(status, least) for day, status in drive.items() if day == before or (not only and day > before)
    )


def _worse(status: Status, least: Status) -> bool:
    return status is Status.BAD or (least is Status.WARNING and status is Status.WARNING)


def _worded(least: Status) -> str:
    return "bad" if least is Status.BAD else f"{least} or bad"


def _table(title: str, shares: Iterable[Share]) -> Table:
    table = Table("group", "what", "flagged", "of", "share", "95 % interval", title=title, box=box.SIMPLE)
    for share in shares:
        low, high = share.interval
        table.add_row(
            share.group,
            share.what,
            f"{share.hits:,}",
            f"{share.of:,}",
            f"{share.hits / share.of:.2%}",
            f"{low:.2%} to {high:.2%}",
        )
    return table


if __name__ == "__main__":
    raise SystemExit(main())
