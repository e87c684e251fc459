"""`predrain backtest`: the recipe on trial at rolling origins, beside its peers."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from rich.console import Console

from predrain.service.cli.evaluate_commands import MANY, WIDTH, show_resampling_progress

if TYPE_CHECKING:
    from predrain.actions.core.drain_policy import Policy
    from predrain.actions.cost_benefit import FailureCostRow, FigureInterval
    from predrain.models.lab.backtest import Backtest, BacktestPlan, FleetTrial
    from predrain.models.lab.report import Bytes


def run_backtest_command(
    *history: Path,
    split: Annotated[list[date] | None, MANY] = None,
    origins: int = 1,
    judge_days: int = 60,
    embargo: int = 0,
    every: int = 7,
    also_every: Annotated[list[int] | None, MANY] = None,
    peers: Annotated[list[str] | None, MANY] = None,
    challengers: Annotated[list[str] | None, MANY] = None,
    leave_out: Annotated[list[str] | None, MANY] = None,
    resume: bool = False,
    policy: Path | None = None,
    resamples: int = 1000,
    seed: int = 0,
    threads: int = 2,
    out: Path | None = None,
    tracking_uri: str | None = None,
    json: bool = False,
) -> int:
    """Train on what was known on a day, judge the days after it, and compare with peers on the same drives.

    Example: predrain backtest drives/2018.parquet --split 2018-04-30 --out trial

    Parameters
    ----------
    history
        Backblaze-shaped parquet or CSV with `failure`, or change points with their drives table.
    split
        the last day that the training knows; several are rolling origins.
    origins
        without --split: the number of splits; the last judged days are at the end of the history.
    judge_days
        days judged after each split.
    embargo
        days between a split and the first judged day.
    every
        days between landmarks.
    also_every
        further distances of landmarks, in days, at which the same days are judged; 1 is what the service does.
    peers
        forecasters to beat, `all` or `none`; by default lgbm_plain, rf5, smart_197, any5, any5_rise, level, rise.
    challengers
        predrain's other models to compare, `all` for every one.
    leave_out
        drives judged by forecasters that have not learned from them: `maker`, `model`, `era`, or one set, `maker=WDC`.
    resume
        with --out: reuse bundles that an earlier run with the same files and splits wrote there.
    policy
        drain policy (TOML, the keys of `[policy]`): the bytes that the last split's forecast saves and costs under it.
    resamples
        number of resamples of the drives for each interval.
    seed
        seed of the resamples and of peers that learn.
    threads
        number of threads of training and scoring.
    out
        folder for report.html, backtest.json and each split's bundle and scores.
    tracking_uri
        MLflow store, such as sqlite:///runs.db: log each fleet's figures as a run.
    json
        print JSON.
    """
    from predrain.data.history import list_history_files
    from predrain.models.lab.backtest import BacktestPlan, parse_leave_out
    from predrain.models.lab.backtest import run_backtest as run
    from predrain.models.lab.report import require_report_packages
    from predrain.service.config.settings import read_policy

    if (
        not history
        or min(origins, judge_days, every, *(also_every or ()), resamples + 1, threads) < 1
        or embargo < 0
    ):
        print(
            "predrain backtest: give histories and positive numbers; see predrain backtest --help",
            file=sys.stderr,
        )
        return 2
    plan = BacktestPlan(
        splits=tuple(split or ()),
        origins=origins,
        judge_days=judge_days,
        embargo=embargo,
        every=every,
        also_every=tuple(dict.fromkeys(days for days in also_every or () if days != every)),
        peers=_choose_peers(peers),
        challengers=_choose_challengers(challengers),
        leave_out=tuple(parse_leave_out(text) for text in leave_out or ()),
        resume=resume,
        resamples=resamples,
        seed=seed,
        threads=threads,
    )
    limits = read_policy(policy) if policy else None
    if out:
        require_report_packages()
    with _open_output_folder(out) as folder, show_resampling_progress() as on_step:
        tried = run(list_history_files(history), plan, folder, tell=_print_progress, on_step=on_step)
        worth = (
            {fleet.fleet.name: _compute_cost_benefit(fleet, limits, plan) for fleet in tried.fleets}
            if limits
            else {}
        )
        answer = msgspec.json.encode({"backtest": tried, "worth": worth}, enc_hook=str)
        if out:
            _write_backtest_report(out, tried, worth, answer)
    if tracking_uri is not None:
        _record_backtest_runs(tracking_uri, tried, history)
    if json:
        sys.stdout.buffer.write(answer + b"\n")
    else:
        _print_backtest(tried, worth)
    if tried.looked_ahead:
        print(f"predrain: {len(tried.looked_ahead):,} scores changed when later days were cut off; "
              "the forecast looks ahead.", file=sys.stderr)  # fmt: skip
        return 1
    return 3 if tried.left_out else 0


def _choose_peers(named: list[str] | None) -> tuple[str, ...]:
    from predrain.models.lab.peers import DEFAULT, NAMES

    if named is None:
        return DEFAULT
    if named == ["all"]:
        return NAMES
    return () if named == ["none"] else tuple(named)


def _choose_challengers(named: list[str] | None) -> tuple[str, ...]:
    if named == ["all"]:
        from predrain.models.lab.challengers import NAMES

        return tuple(NAMES)
    return tuple(named or ())


@contextmanager
def _open_output_folder(out: Path | None) -> Iterator[Path]:
    """Yield the folder for the splits' bundles and scores: `out`, or a temporary folder that is deleted at the end."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="predrain-backtest-") as scratch:
        yield Path(scratch)


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print_backtest(tried: Backtest, worth: Mapping[str, tuple[FailureCostRow, ...]]) -> None:
    from predrain.actions.cost_benefit import format_cost_table
    from predrain.data.history import describe_files
    from predrain.models.evaluate.score_tables import render_evaluation_report
    from predrain.models.lab.report import further_lines
    from predrain.models.lab.report.report_texts import describe_leakage_check, summarize_fleet

    console = Console()
    if not console.is_terminal:
        console.width = WIDTH
    for line in tried.left_out:
        print(line, file=sys.stderr)
    for fleet in tried.fleets:
        console.rule(describe_files(fleet.fleet.readings))
        for sentence in summarize_fleet(fleet):
            console.print(sentence)
        for shown in render_evaluation_report(fleet.report, None):
            console.print(shown)
        for shown in further_lines(fleet, tried.plan):
            console.print(shown)
        for peer, note in fleet.notes.items():
            console.print(f"{peer}: {note}.")
        if fleet.fleet.name in worth:
            console.print(format_cost_table(worth[fleet.fleet.name]), soft_wrap=True)
    console.print(describe_leakage_check(tried))


def _write_backtest_report(
    out: Path, tried: Backtest, worth: Mapping[str, tuple[FailureCostRow, ...]], answer: bytes
) -> None:
    from predrain.models.lab.report import render_backtest_page

    (out / "backtest.json").write_bytes(answer)
    bytes_ = {name: _build_bytes_section(cost_rows) for name, cost_rows in worth.items()}
    (out / "report.html").write_text(render_backtest_page(tried, bytes_), encoding="utf-8")
    _print_progress(f"wrote {out / 'report.html'} and backtest.json")


def _record_backtest_runs(tracking_uri: str, tried: Backtest, history: Sequence[Path]) -> None:
    """Record each fleet as a run of the registry: our figures under their own names, peers' figures after the peer's
    name.
    """
    from predrain.models.deploy.bundle_registry import Registry
    from predrain.models.forecast.provenance import describe_code, digest_histories

    registry = Registry(tracking_uri)
    made_from = describe_code() | {"histories_sha256": digest_histories(history)}
    for fleet in tried.fleets:
        origins = [trial.origin for trial in fleet.origins]
        told = {
            "splits": ",".join(str(origin.split) for origin in origins),
            "first_judged": str(origins[0].first),
            "last_judged": str(origins[-1].last),
            "every_days": str(tried.plan.every),
            "seed": str(tried.plan.seed),
        }
        ours, *peers = fleet.report.judged
        figures = {name: figure.value for name, figure in ours.figures.items()} | {
            f"{peer.name}/{name}": figure.value for peer in peers for name, figure in peer.figures.items()
        }
        counts = fleet.report.counts
        figures |= {"failures": counts.failures, "drives": counts.drives, "healthy_windows": counts.windows}
        run = registry.record_backtest(
            f"backtest {fleet.fleet.name}", told | made_from, _clean_figure_names(figures)
        )
        _print_progress(f"recorded the backtest of {fleet.fleet.name} as run {run} in {tracking_uri}")


def _clean_figure_names(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figures under names that MLflow accepts: letters, digits, `_`, `-`, `.`, blanks and `/`."""
    return {re.sub(r"[^\w\-. /]", "_", name): value for name, value in figures.items()}


def _compute_cost_benefit(
    fleet: FleetTrial, policy: Policy, plan: BacktestPlan
) -> tuple[FailureCostRow, ...]:
    """Return the worth of the last split's forecast under the policy, at its failure costs and at others beside
    them.
    """
    from predrain.models.evaluate import read_scores, read_truth
    from predrain.models.forecast.calibration import Thresholds
    from predrain.service.forecasting.score_cost_benefit import sizes_of, worth_of_scores

    last = fleet.origins[-1]
    _print_progress(
        f"{fleet.fleet.name}: replaying the policy from {last.origin.first} to {last.origin.last}"
    )
    return worth_of_scores(
        read_scores(last.scores),
        read_truth(fleet.fleet.truth),
        policy,
        Thresholds(last.thresholds["warning"], last.thresholds["bad"]),
        sizes=sizes_of(fleet.fleet.truth),
        seed=plan.seed,
        tell=_print_progress,
    )


def _build_bytes_section(cost_rows: tuple[FailureCostRow, ...]) -> Bytes:
    """Return the report's section in bytes, with one row per failure cost."""
    from predrain.actions.cost_benefit import HERE
    from predrain.models.evaluate import BootstrapInterval as Figure
    from predrain.models.lab.report import Bytes
    from predrain.models.lab.report.report_texts import format_share

    nan = float("nan")
    worths = [cost_row.worth for cost_row in cost_rows]
    first = worths[0]
    names = [cost_row.name for cost_row in cost_rows]

    def figure(interval: FigureInterval, digits: int) -> str:
        return format_share(
            Figure(*(nan if v is None else v for v in (interval.value, interval.low, interval.high))), digits
        )

    return Bytes(
        head=(
            f"The drain policy was replayed by the code that runs on a cluster, from {first.first} to {first.last}, "
            f"over {first.drives:,} drives on a made layout: {first.failures:,} failed with "
            f"{first.failing_bytes / 1e12:,.1f} TB on them. A drain is for nothing when its drive lives on for "
            f"{first.horizon_days} days or more."
        ),
        settings=names,
        safe=[nan if w.migration_rate.value is None else w.migration_rate.value for w in worths],
        nothing=[nan if w.mismigration_rate.value is None else w.mismigration_rate.value for w in worths],
        columns=("failure_cost", "cost saved", "failing bytes safe", "moved for nothing, a byte and 30 d", "drains",
                 "in time", "for nothing", "undecided", "median lead", "p90 wait"),
        cells=[
            (
                f"{cost_row.failure_cost:g}",
                figure(cost_row.worth.cost_saved, 1),
                figure(cost_row.worth.migration_rate, 1),
                figure(cost_row.worth.mismigration_rate, 3),
                f"{cost_row.worth.drains:,}",
                f"{cost_row.worth.in_time:,}",
                f"{cost_row.worth.for_nothing:,}",
                f"{cost_row.worth.undecided:,}",
                "–" if cost_row.worth.lead_days is None else f"{cost_row.worth.lead_days[1]:.0f} d",
                "–" if cost_row.worth.wait_hours is None else f"{cost_row.worth.wait_hours[1]:.0f} h",
            )
            for cost_row in cost_rows
        ],
        chosen=names.index(f"failure_cost {HERE}"),
    )  # fmt: skip
