"""`predrain train`."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from predrain.service.cli.crew import Dask, RowsAPart, crew_of
from predrain.service.cli.options import Where

if TYPE_CHECKING:
    from predrain.data.endings import Word


def train(
    *history: Path,
    out: Path,
    until: Annotated[date | None, Parameter(help="use nothing that was known only later")] = None,
    exclude: Annotated[
        Path | None, Parameter(help="file of serial numbers, one a line, to leave out")
    ] = None,
    seed: int = 20180630,
    threads: int = 2,
    outcomes: Annotated[
        Path | None, Parameter(help="what became of drives: parquet or CSV of serial_number, date, fate")
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
    track: Annotated[
        str | None, Parameter(help="MLflow store that numbers the bundle, such as sqlite:///runs.db")
    ] = None,
    name: Annotated[str | None, Parameter(help="the bundle's name; by default the folder's")] = None,
    rows_a_part: RowsAPart = None,
    dask: Dask = None,
) -> int:
    """Train a bundle on drive histories (Backblaze-shaped parquet or CSV, with `failure` or a drives table).

    With --state, --config or --onto the training is continued: what another bundle was trained on is learned from
    again beside the files, so that one's own months count from the first death on.

    Example: predrain train /srv/history/*/part.parquet --state /var/lib/predrain --out bundle
    """
    from predrain.data.history import HistoryFiles
    from predrain.data.refusal import Refusal
    from predrain.models.model_card import card_of
    from predrain.models.train import Foundation, write
    from predrain.models.train import train as run

    if alone and onto is not None:
        print(
            "predrain train: --alone and --onto exclude each other; see predrain train --help",
            file=sys.stderr,
        )
        return 2
    if not history or (rows_a_part is not None and rows_a_part < 1):
        why = "--rows-a-part must be 1 or more" if history else "name at least one history file"
        print(f"predrain train: {why}; see predrain train --help", file=sys.stderr)
        return 2
    barred: frozenset[str] = frozenset()
    if exclude is not None:
        if not exclude.is_file():
            raise Refusal(
                f"There is no file {exclude}; --exclude wants a list of serial numbers, one a line."
            )
        barred = frozenset(line.strip() for line in exclude.read_text().splitlines() if line.strip())
    words = read_statements(outcomes, state, config)
    continues = not alone and any(given is not None for given in (onto, state, config))
    foundation = Foundation.load_bundle(onto) if continues else None
    today = datetime.now(UTC).date()
    found = HistoryFiles(history, threads=threads).survey(until=until, today=today)
    for sentence in found.sentences():
        print(sentence, file=sys.stderr)
    with crew_of(dask, rows_a_part, threads) as crew:
        trained = run(
            history,
            name=name or out.resolve().name,
            until=until,
            exclude=barred,
            seed=seed,
            threads=threads,
            words=words,
            today=today,
            onto=foundation,
            crew=crew,
            tell=lambda line: print(line, file=sys.stderr, flush=True),
        )
    write(trained, out, card_of(trained.facts))
    if track is not None:
        from predrain.models.provenance import describe_code, digest_histories
        from predrain.models.registry import Registry

        made_from = describe_code() | {"histories_sha256": digest_histories(history)}
        made = Registry(track).register(trained.facts, out, parameters=made_from, figures=trained.figures)
        print(f"registered as version {made.number} in {track}", file=sys.stderr)
    print(
        f"wrote {out}: {trained.facts.counts['drives']:,} drives, {trained.facts.counts['deaths']:,} deaths"
    )
    return 3 if found.refused else 0


def read_statements(outcomes: Path | None, state: Path | None, config: Path | None) -> tuple[Word, ...]:
    """What was said of drives' ends, in a file and in a service's store. Raises UnreadableHistory, Refusal."""
    from predrain.data.endings import read_words

    words = read_words(outcomes) if outcomes is not None else ()
    if state is None and config is None:
        return words
    from predrain.service.backends import standing_store
    from predrain.service.scoring.fates import words_of
    from predrain.service.state_directory import StateUnusable

    settings = Where(state, config).settings()
    with standing_store(settings) as store:
        if store is None:
            raise StateUnusable(
                f"{settings.service.state} holds no store; --state wants the state directory of a service."
            )
        return (*words, *words_of(store))
