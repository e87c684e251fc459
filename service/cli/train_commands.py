"""`predrain train`."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from predrain.service.cli.executor_choice import Dask, HistoryFile, RowsAPart, Threads, choose_executor
from predrain.service.cli.shared_options import StateAddress

if TYPE_CHECKING:
    from predrain.data.reported_endings import ReportedEnding


def train_bundle_command(
    *history: HistoryFile,
    out: Annotated[Path, Parameter(help="folder into which the bundle is written")],
    until: Annotated[date | None, Parameter(help="use nothing that was known only later")] = None,
    exclude: Annotated[
        Path | None, Parameter(help="file of serial numbers, one a line, to leave out")
    ] = None,
    seed: Annotated[int, Parameter(help="seed of the training, a whole number")] = 20180630,
    threads: Threads = 2,
    outcomes: Annotated[
        Path | None,
        Parameter(help="what became of drives: parquet or CSV of `serial_number`, `date`, `fate`"),
    ] = None,
    state: Annotated[
        Path | None, Parameter(help="a service's state directory, for its outcomes and drains")
    ] = None,
    config: Annotated[
        Path | None, Parameter(help="that service's settings file, where its store is a database")
    ] = None,
    onto: Annotated[
        Path | None,
        Parameter(help="a bundle whose training is continued; with --state by default the one that ships"),
    ] = None,
    alone: Annotated[
        bool, Parameter(negative="", help="learn from the files alone, though --state is given")
    ] = False,
    tracking_uri: Annotated[
        str | None, Parameter(help="MLflow store that numbers the bundle, such as sqlite:///runs.db")
    ] = None,
    name: Annotated[str | None, Parameter(help="the bundle's name; by default the folder's")] = None,
    rows_per_part: RowsAPart = None,
    dask: Dask = None,
) -> int:
    """Train a bundle on drive histories (Backblaze-shaped parquet or CSV, with `failure` or a drives table).

    With --state, --config or --onto the training is continued: what another bundle was trained on is learned from
    again beside the files, so that one's own months count from the first death on.

    Example: predrain train /srv/history/*/part.parquet --state /var/lib/predrain --out bundle
    """
    from predrain.data.history import HistoryFiles, list_history_files
    from predrain.data.refusal import Refusal
    from predrain.models.deploy.model_card import card_of
    from predrain.models.forecast.training import TrainingFoundation, save_trained_bundle
    from predrain.models.forecast.training import train_forecaster as run

    if alone and onto is not None:
        print(
            "predrain train: --alone and --onto exclude each other; see predrain train --help",
            file=sys.stderr,
        )
        return 2
    if not history or (rows_per_part is not None and rows_per_part < 1):
        why = "--rows-per-part must be 1 or more" if history else "name at least one history file"
        print(f"predrain train: {why}; see predrain train --help", file=sys.stderr)
        return 2
    import_module("lightgbm")  # raises before the hours of reading; scoring needs its library alone
    barred: frozenset[str] = frozenset()
    if exclude is not None:
        if not exclude.is_file():
            raise Refusal(
                f"There is no file {exclude}; --exclude wants a list of serial numbers, one a line."
            )
        barred = frozenset(line.strip() for line in exclude.read_text().splitlines() if line.strip())
    words = read_statements(outcomes, state, config)
    continues = not alone and any(given is not None for given in (onto, state, config))
    foundation = TrainingFoundation.load_bundle(onto) if continues else None
    today = datetime.now(UTC).date()
    files = list_history_files(history)
    found = HistoryFiles(files, threads=threads).find_defects(until=until, today=today)
    for sentence in found.sentences():
        print(sentence, file=sys.stderr)
    with choose_executor(dask, rows_per_part, threads) as executor:
        trained = run(
            files,
            name=name or out.resolve().name,
            until=until,
            exclude=barred,
            seed=seed,
            threads=threads,
            words=words,
            today=today,
            onto=foundation,
            executor=executor,
            tell=lambda line: print(line, file=sys.stderr, flush=True),
        )
    save_trained_bundle(trained, out, card_of(trained.facts))
    if tracking_uri is not None:
        from predrain.models.deploy.bundle_registry import Registry
        from predrain.models.forecast.provenance import describe_code, digest_histories

        made_from = describe_code() | {"histories_sha256": digest_histories(files)}
        made = Registry(tracking_uri).register(
            trained.facts, out, parameters=made_from, figures=trained.figures
        )
        print(f"registered as version {made.number} in {tracking_uri}", file=sys.stderr)
    print(
        f"wrote {out}: {trained.facts.counts['drives']:,} drives, {trained.facts.counts['deaths']:,} deaths"
    )
    return 3 if found.refused_rows else 0


def read_statements(
    outcomes: Path | None, state: Path | None, config: Path | None
) -> tuple[ReportedEnding, ...]:
    """Read the statements about drives' ends from a file and a service's store. Raises UnreadableHistory, Refusal."""
    from predrain.data.reported_endings import read_words

    words = read_words(outcomes) if outcomes is not None else ()
    if state is None and config is None:
        return words
    from predrain.service.config.state_directory import StateUnusable
    from predrain.service.forecasting.known_fates import words_of
    from predrain.service.storage.backends import standing_store

    settings = StateAddress(state, config).settings()
    with standing_store(settings) as store:
        if store is None:
            raise StateUnusable(
                f"{settings.service.state} holds no store; --state wants the state directory of a service."
            )
        return (*words, *words_of(store))
