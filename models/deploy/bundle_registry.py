"""The registry of trainings and numbered bundles: an MLflow store, by default a SQLite file, or a server by URI.

The store gets only text: parameters, figures, and the bundle's files as artifacts. Each version has the digest of
its bundle in the store, apart from the files. So a bundle that was changed among the artifacts is refused when it
is fetched, even if its checksums fit. The extra `tracking` installs MLflow.
"""

from __future__ import annotations

import logging
import math
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from predrain.data.refusal import Refusal
from predrain.models.deploy.bundle_store import NoSuchBundle, digest_of
from predrain.models.deploy.bundle_trial import BundleTrials
from predrain.models.forecast.bundle import FILES, OPTIONAL, SUMS, Bundle, BundleFacts, CorruptBundle

EXPERIMENT: Final = "predrain"
CHAMPION: Final = "champion"
CHALLENGER: Final = "challenger"
_FOLDER: Final = "bundle"
_DIGEST: Final = "bundle_digest"
_METRICS_TOGETHER: Final = 500
"""Number of metrics in one request, of which MLflow takes at most 1,000."""


class NoTracking(Refusal):
    """MLflow is not installed, or its store cannot be reached."""


@dataclass(frozen=True, slots=True)
class Version:
    """One registered bundle."""

    number: int
    name: str
    digest: str
    made_at: datetime
    parameters: Mapping[str, str]
    figures: Mapping[str, float]
    run: str
    aliases: tuple[str, ...] = ()


class Registry:
    """The numbered bundles of one store. uri: `sqlite:///FILE`, or a server's `https://...`. Raises NoTracking."""

    def __init__(self, uri: str) -> None:
        try:
            import mlflow
        except ImportError:
            raise NoTracking("MLflow is not installed; install predrain with its extra `tracking`.") from None
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self.uri = uri
        with self._explained():
            self._client: Any = mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)

    def register(
        self,
        facts: BundleFacts,
        folder: Path,
        *,
        parameters: Mapping[str, str] | None = None,
        figures: Mapping[str, float] | None = None,
    ) -> Version:
        """Record a training and give its bundle the next number. parameters, figures: in addition to those of the
        facts."""
        with self._explained():
            run = self._begin(
                facts.name,
                parameters_of(facts) | dict(parameters or {}),
                figures_of(facts) | dict(figures or {}),
                kind="training",
            )
            of = run.info.run_id
            for name in (*FILES, *OPTIONAL, SUMS):
                if (folder / name).exists():
                    self._client.log_artifact(of, str(folder / name), _FOLDER)
            self._client.set_terminated(of)
            if not self._known():
                self._client.create_registered_model(EXPERIMENT)
            made = self._client.create_model_version(
                EXPERIMENT,
                source=f"{run.info.artifact_uri}/{_FOLDER}",
                run_id=of,
                tags={_DIGEST: digest_of(folder), "name": facts.name},
            )
        return self.version(str(made.version))

    def record_backtest(self, name: str, parameters: Mapping[str, str], figures: Mapping[str, float]) -> str:
        """Record a backtest of one fleet as a run of its own. Return the run's id."""
        with self._explained():
            run = self._begin(name, parameters, figures, kind="backtest")
            self._client.set_terminated(run.info.run_id)
            return str(run.info.run_id)

    def _begin(
        self, name: str, parameters: Mapping[str, str], figures: Mapping[str, float], *, kind: str
    ) -> Any:
        """Create a run with its parameters and figures. Unknown figures are left out, because stores refuse NaN."""
        from mlflow.entities import Metric, Param

        run = self._client.create_run(self._experiment(), run_name=name, tags={"kind": kind})
        now = run.info.start_time
        known = [Metric(of, value, now, 0) for of, value in figures.items() if math.isfinite(value)]
        for first in range(0, max(len(known), 1), _METRICS_TOGETHER):
            some = known[first : first + _METRICS_TOGETHER]
            told = [Param(of, value) for of, value in parameters.items()] if first == 0 else []
            self._client.log_batch(run.info.run_id, metrics=some, params=told)
        return run

    def versions(self) -> tuple[Version, ...]:
        """Return every version, newest first."""
        with self._explained():
            if not self._known():
                return ()
            found: list[Any] = []
            token = None
            while token != "":
                page = self._client.search_model_versions(f"name = '{EXPERIMENT}'", page_token=token)
                found, token = found + list(page), page.token or ""
            aliases = self._aliases()
            return tuple(
                self._version(one, aliases) for one in sorted(found, key=lambda one: -int(one.version))
            )

    def version(self, word: str) -> Version:
        """Return the version with a number or an alias. Raises NoSuchBundle."""
        for one in self.versions():
            if word == str(one.number) or word in one.aliases:
                return one
        raise NoSuchBundle(
            f"{self.uri} has no version {word}; `predrain models list` shows those that are there."
        )

    def fetch(self, version: Version, folder: Path) -> Path:
        """Download the bundle of a version into an empty folder, and verify it. Raises CorruptBundle."""
        from mlflow.exceptions import MlflowException

        for name in (*FILES, SUMS, *OPTIONAL):
            try:
                self._client.download_artifacts(version.run, f"{_FOLDER}/{name}", str(folder))
            except (MlflowException, OSError) as error:
                if name not in OPTIONAL:
                    raise CorruptBundle(
                        f"Version {version.number} in {self.uri} lacks {name} ({_shorten_error(error)}); "
                        "train it again."
                    ) from None
        bundle = folder / _FOLDER if (folder / _FOLDER).is_dir() else folder
        if digest_of(bundle) != version.digest:
            raise CorruptBundle(
                f"The files of version {version.number} in {self.uri} are not those that were registered; "
                "restore its artifacts or train it again."
            )
        BundleTrials().check(bundle)
        Bundle.load(bundle)
        return bundle

    def set_alias(self, alias: str, digest: str | None) -> bool:
        """Set an alias to the version with this digest, or remove it. Return whether there is such a version."""
        match = next((one for one in self.versions() if one.digest == digest), None)
        with self._explained():
            if match is not None:
                self._client.set_registered_model_alias(EXPERIMENT, alias, str(match.number))
            elif alias in self._aliases():
                self._client.delete_registered_model_alias(EXPERIMENT, alias)
        return match is not None

    def _experiment(self) -> str:
        known = self._client.get_experiment_by_name(EXPERIMENT)
        if known is not None:
            return str(known.experiment_id)
        return str(
            self._client.create_experiment(EXPERIMENT, artifact_location=_find_artifact_location(self.uri))
        )

    def _known(self) -> bool:
        return any(model.name == EXPERIMENT for model in self._client.search_registered_models())

    def _aliases(self) -> Mapping[str, str]:
        if not self._known():
            return {}
        return {
            str(alias): str(of) for alias, of in self._client.get_registered_model(EXPERIMENT).aliases.items()
        }

    def _version(self, made: Any, aliases: Mapping[str, str]) -> Version:
        run = self._client.get_run(made.run_id)
        return Version(
            number=int(made.version),
            name=made.tags.get("name", run.info.run_name),
            digest=made.tags.get(_DIGEST, ""),
            made_at=datetime.fromtimestamp(made.creation_timestamp / 1000, UTC),
            parameters=dict(run.data.params),
            figures=dict(run.data.metrics),
            run=made.run_id,
            aliases=tuple(sorted(alias for alias, of in aliases.items() if of == str(made.version))),
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (MlflowException, SQLAlchemyError, OSError) as error:
            raise NoTracking(
                f"The tracking store {self.uri} refused ({_shorten_error(error)}); check the URI."
            ) from None


def parameters_of(facts: BundleFacts) -> dict[str, str]:
    """Return the parameters of a training."""
    return {
        "until": facts.until or "",
        "seed": str(facts.seed),
        "schema": facts.schema,
        "from": facts.window[0],
        "to": facts.window[1],
    }


def figures_of(facts: BundleFacts) -> dict[str, float]:
    """Return the figures of a training."""
    return {
        "calibration_slope": facts.calibration.slope,
        "calibration_shift": facts.calibration.shift,
        "threshold_warning": facts.thresholds.warning,
        "threshold_bad": facts.thresholds.bad,
        **{name: float(count) for name, count in facts.counts.items()},
    }


def _find_artifact_location(uri: str) -> str | None:
    """Return the location for artifacts: beside the file of a SQLite store, or None for a server, which has its own."""
    if not uri.startswith("sqlite"):
        return None
    from sqlalchemy.engine import make_url

    file = make_url(uri).database
    return None if not file else (Path(file).resolve().parent / "artifacts").as_uri()


def _shorten_error(error: Exception) -> str:
    lines = str(error).splitlines()
    return textwrap.shorten(lines[0], 160, placeholder="...") if lines else type(error).__name__
