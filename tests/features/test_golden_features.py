"""Golden features: what real drives measured on given days stays what it was, to the last bit.

If a definition is changed on purpose, `python -m tests.features.test_golden_features` writes the files again.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from predrain.data.history import HistoryFiles
from predrain.features import NAMES_IN_ORDER, compute_feature_vectors, ledger_of, rows_at

SAMPLES = Path(__file__).parents[1] / "data" / "drives"
GOLDEN = Path(__file__).parents[1] / "golden" / "features"
KEPT = 8
"""Drives of each file: those with the most rises, and as many quiet ones."""


def measured(name: str) -> dict[str, dict[str, float | None]]:
    """ "serial day" -> feature -> value; the shortest decimal that gives the float32 back, null where missing."""
    history = HistoryFiles([SAMPLES / f"{name}.parquet"]).read()
    ledger = ledger_of(history)
    last = history.start[1:] - 1
    rises = sum(ledger.rows[f"rises_{n}"][last] for n in (5, 187, 188, 197, 198))
    order = np.lexsort((history.serials.astype(str), -np.asarray(rises)))
    drive = np.concatenate([order[:KEPT], order[-KEPT:]]).astype(np.int64)
    day = history.day[last[drive]].astype(np.int64)
    drive, day = np.concatenate([drive, drive]), np.concatenate([day, day - 21])
    seen = rows_at(ledger, drive, day) >= 0
    drive, day = drive[seen], day[seen]
    x = compute_feature_vectors(ledger, drive, day)
    return {
        f"{history.serials[d]} {on}": {
            feature: None if np.isnan(value) else float(str(value))
            for feature, value in zip(NAMES_IN_ORDER, row, strict=True)
        }
        for d, on, row in zip(drive, day, x, strict=True)
    }


@pytest.mark.parametrize("name", ["daily", "changes"])
def test_real_drives_measure_what_they_measured(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    now = measured(name)
    # A new feature is not in the files until they are written again; the values that they hold must stay the same.
    assert now.keys() == golden.keys()
    assert {row: {feature: now[row][feature] for feature in golden[row]} for row in golden} == golden


@pytest.mark.parametrize("name", ["daily", "changes"])
def test_the_golden_drives_tell_something(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    assert len(golden) > KEPT
    told = {feature for row in golden.values() for feature, value in row.items() if value}
    assert {"smart_197", "since_any_rise", "symptoms", "hours"} <= told


if __name__ == "__main__":
    for name in ("daily", "changes"):
        text = json.dumps(measured(name), indent=0)
        (GOLDEN / f"{name}.json").write_text(text + "\n")
