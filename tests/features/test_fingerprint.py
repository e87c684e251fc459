"""A fingerprint tells what a feature measures: another source, window, limit or recursion is another fingerprint."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from predrain.features import SCHEMA, compute_feature_vectors, fingerprint, ledger_of
from predrain.features.drive_history_rows import Floats
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION, LandmarkRows
from predrain.features.fingerprint import hash_measurements, make_fixed_history


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    """Neither before a test nor after it, since another file's tests may come next."""
    fingerprint._hash_all.cache_clear()
    yield
    fingerprint._hash_all.cache_clear()


def measure_otherwise(
    monkeypatch: pytest.MonkeyPatch, name: str, measure: Callable[[LandmarkRows], Floats]
) -> str:
    """The fingerprint of a feature that is measured in this way."""
    changed = [replace(one, measure=measure) if one.name == name else one for one in SCHEMA]
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[compute_feature_vectors.__module__], "SCHEMA", tuple(changed))
        found = hash_measurements([name])[name]
    fingerprint._hash_all.cache_clear()
    return found


def test_no_two_features_measure_the_same() -> None:
    counted = Counter(hash_measurements(NAMES_IN_ORDER).values())
    assert [one for one, times in counted.items() if times > 1] == []


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("smart_5_up_7d", lambda h: h.compute_rise(5, 15)),
        ("smart_5_up_7d", lambda h: h.compute_rise(197, 7)),
        ("smart_5_up_7d", lambda h: np.minimum(h.compute_rise(5, 7), 100.0)),
        ("smart_5_since_rise", lambda h: np.minimum(h.compute_days_since("rose_on_5"), 60.0)),
        ("smart_197_net_30d", lambda h: np.maximum(h.compute_growth("level_197", 30), 0.0)),
        ("pending_fallen", lambda h: h.get_current("most_197") - h.get_current("level_197") + 1.0),
    ],
    ids=["window", "source", "cap", "long ago", "falls", "offset"],
)
def test_another_definition_under_the_same_words_is_seen(
    monkeypatch: pytest.MonkeyPatch, name: str, measure: Callable[[LandmarkRows], Floats]
) -> None:
    (feature,) = (one for one in SCHEMA if one.name == name)
    was = hash_measurements([name])[name]
    fingerprint._hash_all.cache_clear()
    assert measure_otherwise(monkeypatch, name, feature.measure) == was
    assert measure_otherwise(monkeypatch, name, measure) != was


def test_another_recursion_of_the_ledger_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    was = hash_measurements(NAMES_IN_ORDER)
    fingerprint._hash_all.cache_clear()
    held = ledger_of(make_fixed_history())
    rows = {**held.rows, "risen_187": held.rows["risen_187"] * 2}
    monkeypatch.setattr(fingerprint, "ledger_of", lambda _: replace(held, rows=rows))
    now = hash_measurements(NAMES_IN_ORDER)
    assert {"smart_187_up_7d", "smart_187_up_30d"} <= {name for name in was if was[name] != now[name]}
    assert was["smart_5_up_7d"] == now["smart_5_up_7d"]


def test_every_feature_has_many_values_on_the_fixed_history() -> None:
    drive, on = np.meshgrid(np.arange(16), np.array(fingerprint._LANDMARKS) + 17_000, indexing="ij")
    x = compute_feature_vectors(ledger_of(make_fixed_history()), drive.ravel(), on.ravel())
    poor = {name for name, place in POSITION.items() if len(np.unique(x[:, place])) < 6}
    assert poor == set()
