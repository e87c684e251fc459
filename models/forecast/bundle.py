"""A bundle: all that a forecast needs and that a training continues from, as text files with checksums. No pickle.

`model.txt` is the LightGBM model. `bundle.json` has the columns and a hash of their definitions, calibration,
thresholds, base rates, fading, window and counts. `CARD.md` is the model card. `reference.json` describes the
distribution of the features in the training. `landmarks.parquet` is the data that a training continues from; older
bundles lack it. `SHA256SUMS` has the checksums.

Loading verifies all files. A bundle that does not fit is refused with a sentence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from predrain.data.outlook import Status
from predrain.data.refusal import Refusal
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION, schema_hash
from predrain.features.fingerprint import hash_measurements
from predrain.models.forecast.base_rate import BaseRate
from predrain.models.forecast.booster_columns import has_symptom, select_columns
from predrain.models.forecast.calibration import Calibration, Thresholds
from predrain.models.forecast.drift import DriftReference
from predrain.models.forecast.drive_family import (
    COLUMNS,
    UNKNOWN_AGE,
    YEAR,
    DeathRates,
    family_columns,
    rates_at,
)
from predrain.models.forecast.experience import Experience
from predrain.models.forecast.fleet_thresholds import FollowedThresholds
from predrain.models.forecast.hazard import EDGES, compute_failure_probabilities, predict_hazards
from predrain.models.forecast.hazard_trees import HazardTrees, TreePredictor
from predrain.models.forecast.life_expectancy import (
    HazardFading,
    compute_life_quantiles,
    compute_survival_curves,
)
from predrain.models.forecast.recent_mortality import log_odds

DEFAULT: Final = Path(__file__).parents[1] / "bundles" / "default"
FILES: Final = ("model.txt", "bundle.json", "CARD.md")
REFERENCE: Final = "reference.json"
"""Describes the training for `models.forecast.drift`. Bundles that are older than the watch for drift lack the file."""
LANDMARKS: Final = "landmarks.parquet"
"""The data that a training continues from (models.forecast.landmark_file). Older bundles lack it, and no
forecast needs it.
"""
OPTIONAL: Final = (REFERENCE, LANDMARKS)
SUMS: Final = "SHA256SUMS"
SIZE_MAX: Final = 16 * 2**20
NAMED: Final = 5
"""Largest number of features that a refusal names."""


class CorruptBundle(Refusal):
    """A bundle is missing, was changed after it was made, or was made for another feature schema."""


class BundleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `bundle.json`."""

    name: str
    version: int = 1
    schema: str
    """Hash of the names, units and definitions of the features that the booster reads."""
    measured: dict[str, str] = {}
    """Feature -> hash of the values that it measures (features.fingerprint), for each feature that the booster reads.

    Older bundles lack it, and then only the descriptions are compared.
    """
    columns: tuple[str, ...]
    """The columns that the booster reads: the features, in version 1 the family's rate and the maker, then
    the interval."""
    until: str | None
    seed: int
    calibration: Calibration
    thresholds: Thresholds
    rates: DeathRates
    fading: HazardFading
    base: BaseRate = BaseRate()
    """The effect of a drive's base rate on its log odds."""
    filled: bool = False
    """True if a counter that a drive does not report reads as one that never left zero."""
    counts: dict[str, int]
    shares: dict[str, float]
    """Fact -> share of the drives to which it applies that died within 30 days."""
    window: tuple[str, str]
    lately: dict[str, float] = {}
    """Model -> ratio of its drives' latest deaths to those forecast (models.forecast.recent_mortality); 1 for a
    missing model."""


_FACTS, _REFERENCE = msgspec.json.Decoder(BundleFacts), msgspec.json.Decoder(DriftReference)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Many forecasts at once; every array has one entry a drive."""

    p_fail: NDArray[np.float64]
    """(drives, 3) probability of failure within 7, 14 and 30 days; it never falls from left to right."""
    survival: NDArray[np.float64]
    """(drives, len(GRID_DAYS)) probability that the drive still lives on each day of the grid."""
    life: NDArray[np.float64]
    """(drives, 3) days until 10, 50, 90 % of such drives have failed; NaN beyond the grid."""
    status: NDArray[np.object_]
    """Status of each drive."""


class Bundle:
    """A bundle that was loaded and can forecast."""

    def __init__(
        self,
        facts: BundleFacts,
        booster: TreePredictor,
        *,
        threads: int = 1,
        reference: DriftReference | None = None,
        experience: Mapping[str, Experience] | None = None,
        trained: Thresholds | None = None,
    ) -> None:
        self.facts, self.booster, self.threads, self.reference = facts, booster, threads, reference
        self.experience = experience or {}
        self.trained = trained or facts.thresholds
        """The thresholds of the training. The thresholds of a drive without a symptom are never lower than these."""
        self._features = _list_features(facts)
        self._quiet: NDArray[np.float64] | None = None
        """(4,) the booster's probabilities for a drive without a symptom; None if the booster reads more than
        symptoms."""
        if facts.filled:
            nothing = np.full((1, len(NAMES_IN_ORDER)), np.nan, dtype=np.float32)
            columns = select_columns(nothing, self._features, fill=True)
            self._quiet = compute_failure_probabilities(predict_hazards(booster, columns, threads))[0]

    @property
    def name(self) -> str:
        """The name that outlooks quote."""
        return self.facts.name

    @classmethod
    def load(cls, path: Path | None = None, *, threads: int = 1) -> Bundle:
        """Load a bundle, by default the one that ships. Raises CorruptBundle."""
        folder = DEFAULT if path is None else path
        texts = _read_verified_files(folder)
        try:
            facts = _FACTS.decode(texts["bundle.json"])
            looked = texts.get(REFERENCE)
            reference = None if looked is None else _REFERENCE.decode(looked)
        except msgspec.MsgspecError as error:
            raise CorruptBundle(
                f"{folder / 'bundle.json'} is not a bundle ({error}); train it again."
            ) from None
        if changed := _list_changed_features(facts):
            raise CorruptBundle(
                f"{folder / 'bundle.json'} was made for other features than this predrain measures "
                f"({changed}); train it again with `predrain train`."
            )
        try:
            booster = HazardTrees(texts["model.txt"].decode(), facts.columns)
        except ValueError as error:
            raise CorruptBundle(
                f"{folder / 'model.txt'} is not a LightGBM model that can be used ({error}); train it again."
            ) from None
        return cls(facts, booster, threads=threads, reference=reference)

    def build_matrix(self, x: NDArray[np.float32], model: NDArray[np.object_]) -> NDArray[np.float32]:
        """Return the columns that the booster reads, without the interval: (drives, columns). x: (drives, features)."""
        selected = select_columns(x, self._features, fill=self.facts.filled)
        if len(self._features) == len(self.facts.columns) - 1:
            return selected
        return np.column_stack([selected, family_columns(self.facts.rates, model, x[:, POSITION["hours"]])])

    def predict_failure_probabilities(
        self, x: NDArray[np.float32], model: NDArray[np.object_], known: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the probability of failure by 7, 14, 30 and 90 days: (drives, 4). A False in `known` gives
        the base rate.

        The probability of a drive with a symptom is never lower than that of a drive of the same model and
        age without one.
        """
        raw = compute_failure_probabilities(
            predict_hazards(self.booster, self.build_matrix(x, model), self.threads)
        )
        rate = rates_at(self.facts.rates, model, x[:, POSITION["hours"]])
        symptom, lately = has_symptom(x), log_odds(self.facts.lately, model)
        died = self.facts.calibration(raw, self.facts.base.log_odds(rate, symptom) + lately)
        if self._quiet is not None and symptom.any():
            quiet = self.facts.base.log_odds(rate[symptom], np.zeros(int(symptom.sum()), dtype=bool))
            floor = self.facts.calibration(
                np.broadcast_to(self._quiet, (len(quiet), 4)), quiet + lately[symptom]
            )
            died[symptom] = np.maximum(died[symptom], floor)
        died[~known] = 1 - np.exp(-rate[~known, None] / YEAR * np.array(EDGES[1:]))
        return died

    def with_thresholds(self, followed: FollowedThresholds | None) -> Bundle:
        """Return this bundle with thresholds that follow a fleet's own scores, or with its own if `followed` is None.

        The thresholds may fall only for drives with a symptom. In a healthy fleet the highest 1 % would be drives
        of a model that dies more often, and nothing can be done about that.
        """
        if followed is None:
            return self
        facts = msgspec.structs.replace(self.facts, thresholds=followed.thresholds)
        return Bundle(
            facts,
            self.booster,
            threads=self.threads,
            reference=self.reference,
            experience=self.experience,
            trained=self.trained,
        )

    def update_rates(self, own: Mapping[str, Experience]) -> Bundle:
        """Return this bundle with base rates after a fleet's own experience by model (see `DeathRates.update`).

        Only drives without symptoms are counted, because base rates are those of such drives. The share of a
        model's deaths that come without a symptom differs by maker and year.
        """
        if not own:
            return self
        models = np.array(list(own), dtype=object)
        quiet = np.zeros((len(own), len(NAMES_IN_ORDER)), dtype=np.float32)
        quiet[:, POSITION["hours"]] = (UNKNOWN_AGE + 0.5) * 24 * YEAR
        for name in NAMES_IN_ORDER:
            if "since" in name:
                quiet[:, POSITION[name]] = np.nan
        p_90d = self.predict_failure_probabilities(quiet, models, np.ones(len(own), dtype=bool))[:, -1]
        a_year = -np.log1p(-p_90d) * YEAR / EDGES[-1]
        seen = {
            model: (one.quiet_deaths, one.quiet_years * float(a_year[place]))
            for place, (model, one) in enumerate(own.items())
        }
        facts = msgspec.structs.replace(self.facts, rates=self.facts.rates.update(seen))
        return Bundle(facts, self.booster, threads=self.threads, reference=self.reference, experience=own)

    def forecast(
        self, x: NDArray[np.float32], model: NDArray[np.object_], judged: NDArray[np.bool_]
    ) -> Forecast:
        """Forecast drives. x: (drives, features) of features.feature_vectors. judged: False where no counter
        is reported.

        A drive that is not judged gets its model's base rate and status unknown. A model never seen has the typical
        rate of its maker, or of all makers.
        """
        hours = x[:, POSITION["hours"]]
        died = self.predict_failure_probabilities(x, model, judged)
        curve = compute_survival_curves(died, self.facts.rates, self.facts.fading, model, hours)
        p_30d = died[:, 2]
        status = np.full(len(x), Status.GOOD, dtype=object)
        symptom, limits = has_symptom(x), self.facts.thresholds
        for word, limit, trained in (
            (Status.WARNING, limits.warning, self.trained.warning),
            (Status.BAD, limits.bad, self.trained.bad),
        ):
            status[p_30d >= np.where(symptom, limit, max(limit, trained))] = word
        status[~judged] = Status.UNKNOWN
        return Forecast(died[:, :3], curve, compute_life_quantiles(curve), status)

    def contributions(self, x: NDArray[np.float32], model: NDArray[np.object_]) -> NDArray[np.float64]:
        """Return how much each feature of the schema adds to the log odds to die in days 14 to 30: (drives,
        features)."""
        rows = np.column_stack([self.build_matrix(x, model), np.full(len(x), 2, dtype=np.float32)])
        added = np.asarray(self.booster.predict(rows, pred_contrib=True, num_threads=self.threads))
        by_feature = np.zeros((len(x), len(NAMES_IN_ORDER)))
        by_feature[:, [POSITION[name] for name in self._features]] = added[:, : len(self._features)]
        return by_feature


def _list_features(facts: BundleFacts) -> tuple[str, ...]:
    """List the columns that are features: all but the interval and, in version 1, those of the family."""
    return tuple(name for name in facts.columns[:-1] if name not in COLUMNS)


def _list_changed_features(facts: BundleFacts) -> str:
    """Describe the features whose measurement differs from that of the training; return "" if none does.

    Only features that the bundle reads count. Others may be added, removed and changed.
    """
    used = _list_features(facts)
    unknown = [name for name in used if name not in POSITION]
    if unknown:
        return f"no feature is called {', '.join(unknown[:NAMED])}"
    if facts.schema != schema_hash(used):
        return "their descriptions differ"
    if not facts.measured:
        return ""
    now = hash_measurements(used)
    changed = [name for name in used if facts.measured.get(name) != now[name]]
    return f"{', '.join(changed[:NAMED])} measured otherwise" if changed else ""


def save_bundle(
    folder: Path,
    facts: BundleFacts,
    booster: TreePredictor,
    card: str,
    reference: DriftReference | None = None,
    landmarks: bytes | None = None,
) -> None:
    """Write a bundle to a folder, which is created. Files of an older bundle in it are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "model.txt": booster.model_to_string().encode(),
        "bundle.json": msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n",
        "CARD.md": card.encode(),
    }
    for name in OPTIONAL:
        (folder / name).unlink(missing_ok=True)
    if reference is not None:
        texts[REFERENCE] = msgspec.json.encode(reference) + b"\n"
    if landmarks is not None:
        texts[LANDMARKS] = landmarks
    for name, text in texts.items():
        (folder / name).write_bytes(text)
    sums = "".join(f"{hashlib.sha256(texts[name]).hexdigest()}  {name}\n" for name in texts)
    (folder / SUMS).write_text(sums)


def read_landmarks(folder: Path) -> bytes | None:
    """Return the file that `models.forecast.landmark_file` wrote into a bundle, or None without one. Raises
    CorruptBundle.
    """
    return _read_verified_files(folder, (LANDMARKS,)).get(LANDMARKS)


def trees_hash(booster_text: str) -> str:
    """Return the SHA-256 of the trees alone, because LightGBM's text also has parameters such as the number
    of threads."""
    return hashlib.sha256(booster_text.split("\nparameters:")[0].encode()).hexdigest()


def _read_verified_files(folder: Path, optional: Sequence[str] = (REFERENCE,)) -> dict[str, bytes]:
    """Return the files that a bundle must have, and those of `optional` that it has. Raises CorruptBundle."""
    sums = folder / SUMS
    if not sums.is_file():
        raise CorruptBundle(
            f"{folder} holds no bundle (no SHA256SUMS); name a folder made by `predrain train --out`."
        )
    lines = [line.split("  ", 1) for line in sums.read_text(errors="replace").splitlines()]
    if any(len(line) != 2 for line in lines):
        raise CorruptBundle(f"{sums} has a line that is no checksum; restore the bundle or train it again.")
    wanted = {name: digest for digest, name in lines}
    texts: dict[str, bytes] = {}
    there = [name for name in optional if name in wanted or (folder / name).exists()]
    for name in (*FILES, *there):
        path = folder / name
        if not path.is_file() or path.stat().st_size > SIZE_MAX:
            raise CorruptBundle(f"{path} is missing or too large; restore the bundle or train it again.")
        texts[name] = path.read_bytes()
        if hashlib.sha256(texts[name]).hexdigest() != wanted.get(name):
            raise CorruptBundle(f"{path} is not what SHA256SUMS says; restore the bundle or train it again.")
    return texts
