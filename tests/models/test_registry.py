"""A training is written down in MLflow: parameters, figures, and the bundle as text."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from models.bundle import DEFAULT, Bundle

pytest.importorskip("mlflow", reason="the extra `tracking` is not installed")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_run_holds_parameters_figures_and_the_bundles_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow

        from models.registry import track

        uri = f"sqlite:///{tmp_path / 'runs.db'}"
        facts = Bundle.load().facts
        run_id = track(uri, facts, DEFAULT)
        run = mlflow.MlflowClient(tracking_uri=uri).get_run(run_id)
        assert run.info.status == "FINISHED"
        assert run.data.params["schema"] == facts.schema
        assert run.data.metrics["threshold_bad"] == facts.thresholds.bad
        kept = {item.path for item in mlflow.MlflowClient(tracking_uri=uri).list_artifacts(run_id)}
        assert kept == {"CARD.md", "bundle.json", "model.txt"}
