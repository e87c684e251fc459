"""The doctor tells which disks are of models that the shipped counts of failures do not hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from predrain.data.reading import Smart
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.config.state_directory import StateDir
from tests.service.conftest import smart_reading
from tests.service.test_doctor import Told, light, told

__all__ = ["light", "told"]  # fixtures of this module, too


@pytest.mark.parametrize(
    ("models", "state", "says"),
    [
        ((), None, ""),
        (("ST4000DM000", "HUH721212ALN604"), "ok", "hold every model"),
        (
            ("ST4000DM000", "ACME DH24000", "ACME DH24000"),
            "note",
            "models of 2 of 3 hard disks (ACME DH24000: 2)",
        ),
    ],
    ids=["no disks", "models that were counted", "a model that is younger than the counts"],
)
def test_hard_disks_of_models_that_are_younger_than_the_public_counts_are_told(
    told: Told, tmp_path: Path, models: tuple[str, ...], state: str | None, says: str
) -> None:
    store = SqliteStore(StateDir(tmp_path / "state").ensure_exists().store)
    for number, model in enumerate(models):
        reading = smart_reading(str(number))
        assert isinstance(reading.seen, Smart)
        identity = replace(reading.seen.identity, model=model)
        store.add_readings([replace(reading, seen=replace(reading.seen, identity=identity))])
    store.close()
    found = told().get("base rates")
    assert (found.state if found else None) == state
    assert found is None or (says in found.told and "which end on 20" in found.told)
