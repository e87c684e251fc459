"""Where trainings are written down: an MLflow tracking store, by default a SQLite file, a server by its URI.

Only text goes there: parameters, figures, and the bundle's files as artifacts. The extra `tracking` brings MLflow.
"""

from __future__ import annotations

from pathlib import Path

from data.refusal import Refusal
from models.bundle import FILES, Facts

EXPERIMENT = "predrain"


class NoTracking(Refusal):
    """MLflow is not installed, or its store cannot be reached."""


def track(uri: str, facts: Facts, folder: Path) -> str:
    """Write a training down; returns the run's id. uri: `sqlite:///FILE`, or a server's `https://...`.

    Raises NoTracking.
    """
    try:
        import mlflow
    except ImportError:
        raise NoTracking("MLflow is not installed; install predrain with its extra `tracking`.") from None
    from mlflow.exceptions import MlflowException

    try:
        client = mlflow.MlflowClient(tracking_uri=uri)
        known = client.get_experiment_by_name(EXPERIMENT)
        experiment = known.experiment_id if known else client.create_experiment(EXPERIMENT)
        run = client.create_run(experiment, run_name=facts.name)
        for name, value in parameters_of(facts).items():
            client.log_param(run.info.run_id, name, value)
        for name, number in figures_of(facts).items():
            client.log_metric(run.info.run_id, name, number)
        for name in FILES:
            client.log_artifact(run.info.run_id, str(folder / name))
        client.set_terminated(run.info.run_id)
    except MlflowException as error:
        raise NoTracking(f"The tracking store {uri} refused ({error.message}); check the URI.") from None
    return str(run.info.run_id)


def parameters_of(facts: Facts) -> dict[str, str]:
    """What a training was told."""
    return {
        "until": facts.until or "",
        "seed": str(facts.seed),
        "schema": facts.schema,
        "from": facts.window[0],
        "to": facts.window[1],
    }


def figures_of(facts: Facts) -> dict[str, float]:
    """What a training found."""
    return {
        "calibration_slope": facts.calibration.slope,
        "calibration_shift": facts.calibration.shift,
        "threshold_warning": facts.thresholds.warning,
        "threshold_bad": facts.thresholds.bad,
        **{name: float(count) for name, count in facts.counts.items()},
    }
