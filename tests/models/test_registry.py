"""The registry in a real MLflow store: numbered bundles as text, aliases, and no bundle that was touched."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import pytest

from predrain.models.deploy.bundle_registry import CHALLENGER, CHAMPION, NoTracking, Registry, Version
from predrain.models.deploy.bundle_store import NoSuchBundle, digest_of
from predrain.models.forecast.bundle import DEFAULT, Bundle, CorruptBundle


def test_without_mlflow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(NoTracking, match="extra `tracking`"):
        Registry("sqlite:///nowhere.db")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(scope="module")
def registry(place: Path) -> Registry:
    pytest.importorskip("mlflow", reason="the extra `tracking` is not installed")
    made = Registry(f"sqlite:///{place / 'runs.sqlite'}")
    made.register(Bundle.load().facts, DEFAULT)
    made.register(Bundle.load().facts, DEFAULT)
    return made


def artifacts(place: Path, version: Version) -> Path:
    """Return the folder in which MLflow keeps a version's files."""
    (folder,) = (place / "artifacts").glob(f"{version.run}/artifacts/bundle")
    return folder


pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_a_version_holds_parameters_figures_and_the_bundles_files(registry: Registry, place: Path) -> None:
    facts = Bundle.load().facts
    version = registry.version("1")
    assert version.parameters["schema"] == facts.schema
    assert version.figures["threshold_bad"] == facts.thresholds.bad
    assert version.digest == digest_of(DEFAULT)
    kept = {path.name for path in artifacts(place, version).iterdir()}
    assert kept == {path.name for path in DEFAULT.iterdir()}


def test_a_backtest_is_a_run_of_its_own_and_no_version(registry: Registry) -> None:
    import mlflow

    before = len(registry.versions())
    figures = {"recall_at_1pct": 0.5, "rf5/recall_at_1pct": 0.4, "life_days": float("nan")}
    run = mlflow.MlflowClient(tracking_uri=registry.uri).get_run(
        registry.record_backtest("backtest fleet", {"splits": "2018-04-30"}, figures)
    )
    assert run.data.tags["kind"] == "backtest"
    assert run.data.params == {"splits": "2018-04-30"}
    assert run.data.metrics == {"recall_at_1pct": 0.5, "rf5/recall_at_1pct": 0.4}
    assert len(registry.versions()) == before


def test_versions_are_numbered_and_an_alias_names_the_one_with_a_digest(registry: Registry) -> None:
    numbers = [one.number for one in registry.versions()]
    assert numbers == list(range(len(numbers), 0, -1))
    assert len(numbers) >= 2
    assert registry.set_alias(CHAMPION, digest_of(DEFAULT))
    assert registry.version(CHAMPION).digest == digest_of(DEFAULT)
    assert not registry.set_alias(CHAMPION, "0" * 64)
    assert all(CHAMPION not in one.aliases for one in registry.versions())
    with pytest.raises(NoSuchBundle, match="no version challenger"):
        registry.version(CHALLENGER)


def test_a_fetched_bundle_loads_and_is_the_one_that_was_registered(
    registry: Registry, tmp_path: Path
) -> None:
    folder = registry.fetch(registry.version("2"), tmp_path)
    assert Bundle.load(folder).facts == Bundle.load().facts


@pytest.mark.parametrize("resealed", [False, True])
def test_a_bundle_touched_among_the_artifacts_is_refused_even_with_fitting_checksums(
    registry: Registry, place: Path, tmp_path: Path, resealed: bool
) -> None:
    version = registry.register(Bundle.load().facts, DEFAULT)
    kept = artifacts(place, version)
    facts = kept / "bundle.json"
    before = facts.read_bytes()
    facts.write_bytes(before.replace(b'"name": "default"', b'"name": "defaulT"'))
    if resealed:
        sums = (kept / "SHA256SUMS").read_text()
        old, new = (hashlib.sha256(text).hexdigest() for text in (before, facts.read_bytes()))
        assert old in sums
        (kept / "SHA256SUMS").write_text(sums.replace(old, new))
        Bundle.load(kept)
    with pytest.raises(CorruptBundle, match=r"not those that were registered|not what SHA256SUMS says"):
        registry.fetch(version, tmp_path)


def test_a_pickle_among_the_artifacts_is_never_fetched(
    registry: Registry, place: Path, tmp_path: Path
) -> None:
    version = registry.register(Bundle.load().facts, DEFAULT)
    shutil.copy(DEFAULT / "CARD.md", artifacts(place, version) / "model.pkl")
    assert not (registry.fetch(version, tmp_path) / "model.pkl").exists()


def test_a_store_that_is_none_is_refused_in_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="the extra `tracking` is not installed")
    (tmp_path / "x.sqlite").write_text("no database at all, but long enough to be looked at " * 50)
    with pytest.raises(NoTracking, match="check the URI"):
        Registry(f"sqlite:///{tmp_path / 'x.sqlite'}").versions()
