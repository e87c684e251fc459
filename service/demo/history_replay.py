"""`predrain demo --replay DIR`: real histories with a bundle that was not trained on the days shown."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from predrain.data.history import EPOCH
from predrain.data.lifespan import sources_of
from predrain.data.refusal import Refusal
from predrain.features.feature_schema import schema_hash
from predrain.service.demo.demo_run import Demo

SHOWN = timedelta(days=60)
"""Days that are replayed by default: the last ones."""


class NoHistoryToReplay(Refusal):
    """The directory holds no history."""


def build_replay_demo(demo: Demo, folder: Path, tell: Callable[[str], None]) -> Demo:
    """Return the demo over the histories in `folder`, with a bundle trained until the day before the first shown.

    The bundle is kept in the user's cache and trained again when files, day or features change. Raises
    NoHistoryToReplay, UnreadableHistory, TooLittleHistory.
    """
    from predrain.models.deploy.model_card import card_of
    from predrain.models.forecast.training import save_trained_bundle, train_forecaster

    paths = tuple(sorted(path for path in folder.glob("*") if path.suffix in (".parquet", ".csv")))
    if not paths:
        raise NoHistoryToReplay(f"{folder} holds no parquet or CSV file; name a folder of drive histories")
    histories = tuple(path for path in paths if _is_known(path))
    last = max(int(source.lifespans.last.max(initial=0)) for source in sources_of(histories))
    start = demo.start or EPOCH + timedelta(days=last) - SHOWN
    until = start - timedelta(days=1)
    bundle = _find_cache_directory() / _hash_histories(histories, until.isoformat())
    if not (bundle / "SHA256SUMS").exists():
        tell(f"training a bundle on what was known until {until} (once; kept in {bundle})")
        trained = train_forecaster(
            histories, name=f"until-{until}", until=until, tell=lambda line: tell(f"  {line}")
        )
        save_trained_bundle(trained, bundle, card_of(trained.facts))
    tell(f"replaying {start} to {EPOCH + timedelta(days=last)} with bundle until-{until}")
    note = (
        f"Real drives from {folder.name}, day by day; the bundle has seen nothing after {until}. About 4 in "
        "10 real failures show no sign first: those cannot be foretold."
    )
    return replace(demo, histories=histories, bundle=bundle, start=start, note=note)


def _is_known(path: Path) -> bool:
    """Return whether the file is a history or a drives table; other tables in the directory are ignored."""
    import duckdb

    from predrain.data.history import columns_of, is_history

    with duckdb.connect(":memory:") as connection:
        columns = columns_of(connection, path)
    return is_history(columns) or {"serial_number", "last_date", "failure"} <= columns


def _hash_histories(paths: tuple[Path, ...], until: str) -> str:
    told = [f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in paths]
    return hashlib.sha256("\n".join([*told, until, schema_hash()]).encode()).hexdigest()[:16]


def _find_cache_directory() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "predrain" / "replay"
