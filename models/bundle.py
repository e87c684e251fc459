"""A bundle: everything a forecast needs, as text files, and what a training continues from, with checksums. No pickle.

`model.txt` (LightGBM), `bundle.json` (columns and a hash of what they mean, calibration, thresholds, base rates,
fading, window, counts), `CARD.md`, `reference.json` (how the drives looked) and `landmarks.parquet` (what a
training continues from), which older bundles lack, `SHA256SUMS`.
Loading verifies all of it and refuses what does not fit with a sentence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from predrain.data.outlook import Status
from predrain.data.refusal import Refusal
from predrain.features.schema import NAMES_IN_ORDER, POSITION, schema_hash
from predrain.models.base_rate import BaseRate
from predrain.models.booster_columns import has_symptom, select_columns
from predrain.models.calibrate import Calibration, Thresholds
from predrain.models.drift import Reference
from predrain.models.experience import Experience
from predrain.models.family import COLUMNS, UNKNOWN_AGE, YEAR, Rates, family_columns, rates_at
from predrain.models.fleet_thresholds import FollowedThresholds
from predrain.models.hazard import EDGES, failing, hazards
from predrain.models.life import Fading, quantiles, survival
from predrain.models.recent_mortality import log_odds
from predrain.models.tree_text import check_trees

if TYPE_CHECKING:
    import lightgbm as lgb


DEFAULT: Final = Path(__file__).parent / "bundles" / "default"
FILES: Final = ("model.txt", "bundle.json", "CARD.md")
REFERENCE: Final = "reference.json"
"""Bundles of before drift was watched lack it."""
LANDMARKS: Final = "landmarks.parquet"
"""What a training continues from (models.landmark_file); older bundles lack it, and no forecast needs it."""
OPTIONAL: Final = (REFERENCE, LANDMARKS)
SUMS: Final = "SHA256SUMS"
SIZE_MAX: Final = 16 * 2**20


class CorruptBundle(Refusal):
    """A bundle is missing, was changed after it was made, or was made for another feature schema."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What `bundle.json` holds."""

    name: str
    version: int = 1
    schema: str
    columns: tuple[str, ...]
    """What the booster reads, in order: features; in version 1 the family's rate and maker too; then the interval."""
    until: str | None
    seed: int
    calibration: Calibration
    thresholds: Thresholds
    rates: Rates
    fading: Fading
    base: BaseRate = BaseRate()
    """What a drive's base rate adds to its log odds."""
    filled: bool = False
    """Whether counters that a drive does not report read as counters that never left zero."""
    counts: dict[str, int]
    shares: dict[str, float]
    """Of drives to which a fact applies, the share that died within 30 days."""
    window: tuple[str, str]
    lately: dict[str, float] = {}
    """Model -> how often its drives died lately, over the forecast (models.recent_mortality); 1 where it is missing."""


_FACTS, _REFERENCE = msgspec.json.Decoder(Facts), msgspec.json.Decoder(Reference)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Many forecasts at once; every array has one entry a drive."""

    p_fail: NDArray[np.float64]
    """(drives, 3) chance to fail within 7, 14, 30 days; never falling from left to right."""
    survival: NDArray[np.float64]
    """(drives, len(GRID_DAYS))"""
    life: NDArray[np.float64]
    """(drives, 3) days until 10, 50, 90 % of such drives have failed; NaN beyond the grid."""
    status: NDArray[np.object_]
    """Status of each drive."""


class Bundle:
    """A loaded bundle."""

    def __init__(
        self,
        facts: Facts,
        booster: lgb.Booster,
        *,
        threads: int = 1,
        reference: Reference | None = None,
        experience: Mapping[str, Experience] | None = None,
        trained: Thresholds | None = None,
    ) -> None:
        self.facts, self.booster, self.threads, self.reference = facts, booster, threads, reference
        self.experience = experience or {}
        self.trained = trained or facts.thresholds
        """The thresholds of the training: a drive without a symptom is called ill by no lower ones."""
        self._features = _list_features(facts)
        self._quiet: NDArray[np.float64] | None = None
        """(4,) the booster's chances of a drive without a symptom; None where it reads more than symptoms."""
        if facts.filled:
            nothing = np.full((1, len(NAMES_IN_ORDER)), np.nan, dtype=np.float32)
            columns = select_columns(nothing, self._features, fill=True)
            self._quiet = failing(hazards(booster, columns, threads))[0]

    @property
    def name(self) -> str:
        """Its name, as outlooks quote it."""
        return self.facts.name

    @classmethod
    def load(cls, path: Path | None = None, *, threads: int = 1) -> Bundle:
        """Load a bundle, by default the one that ships. Raises CorruptBundle."""
        import lightgbm as lgb

        folder = DEFAULT if path is None else path
        texts = _verified(folder)
        try:
            facts = _FACTS.decode(texts["bundle.json"])
            looked = texts.get(REFERENCE)
            reference = None if looked is None else _REFERENCE.decode(looked)
        except msgspec.MsgspecError as error:
            raise CorruptBundle(
                f"{folder / 'bundle.json'} is not a bundle ({error}); train it anew."
            ) from None
        if not _fits(facts):
            raise CorruptBundle(
                f"{folder / 'bundle.json'} was made for other features than this predrain measures; "
                "train it anew with `predrain train`."
            )
        try:
            booster = lgb.Booster(model_str=check_trees(texts["model.txt"].decode(), facts.columns))
        except (lgb.basic.LightGBMError, ValueError) as error:
            raise CorruptBundle(
                f"{folder / 'model.txt'} is not a LightGBM model that can be used ({error}); train it anew."
            ) from None
        return cls(facts, booster, threads=threads, reference=reference)

    def matrix(self, x: NDArray[np.float32], model: NDArray[np.object_]) -> NDArray[np.float32]:
        """(drives, columns without the interval) what the booster reads. x: (drives, features)."""
        selected = select_columns(x, self._features, fill=self.facts.filled)
        if len(self._features) == len(self.facts.columns) - 1:
            return selected
        return np.column_stack([selected, family_columns(self.facts.rates, model, x[:, POSITION["hours"]])])

    def chances(
        self, x: NDArray[np.float32], model: NDArray[np.object_], known: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(drives, 4) chance to have failed by 7, 14, 30 and 90 days; known: False gives the model's base rate.

        A drive with a symptom never has a lower chance than one of its model and age without.
        """
        raw = failing(hazards(self.booster, self.matrix(x, model), self.threads))
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
        """This bundle with thresholds that follow a fleet's own scores; None: with its own.

        They may fall for drives with a symptom only: in a fleet in good health the 1 % that stand out would be drives
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
        """This bundle with base rates after a fleet's own experience by model (see `Rates.update`).

        Only drives that showed nothing are counted: base rates are theirs, and what share of a model's deaths comes
        without a symptom differs by maker and year.
        """
        if not own:
            return self
        models = np.array(list(own), dtype=object)
        quiet = np.zeros((len(own), len(NAMES_IN_ORDER)), dtype=np.float32)
        quiet[:, POSITION["hours"]] = (UNKNOWN_AGE + 0.5) * 24 * YEAR
        for name in NAMES_IN_ORDER:
            if "since" in name:
                quiet[:, POSITION[name]] = np.nan
        p_90d = self.chances(quiet, models, np.ones(len(own), dtype=bool))[:, -1]
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
        """Forecast drives. x: (drives, features) of features.vector; judged: False where no counter is reported.

        A drive that is not judged gets its model's base rate and status unknown. A model never seen has the typical
        rate of its maker, or of all makers.
        """
        hours = x[:, POSITION["hours"]]
        died = self.chances(x, model, judged)
        curve = survival(died, self.facts.rates, self.facts.fading, model, hours)
        p_30d = died[:, 2]
        status = np.full(len(x), Status.GOOD, dtype=object)
        symptom, limits = has_symptom(x), self.facts.thresholds
        for word, limit, trained in (
            (Status.WARNING, limits.warning, self.trained.warning),
            (Status.BAD, limits.bad, self.trained.bad),
        ):
            status[p_30d >= np.where(symptom, limit, max(limit, trained))] = word
        status[~judged] = Status.UNKNOWN
        return Forecast(died[:, :3], curve, quantiles(curve), status)

    def contributions(self, x: NDArray[np.float32], model: NDArray[np.object_]) -> NDArray[np.float64]:
        """(drives, features) what each feature of the schema adds to the log odds to die in days 14 to 30."""
        rows = np.column_stack([self.matrix(x, model), np.full(len(x), 2, dtype=np.float32)])
        added = np.asarray(self.booster.predict(rows, pred_contrib=True, num_threads=self.threads))
        by_feature = np.zeros((len(x), len(NAMES_IN_ORDER)))
        by_feature[:, [POSITION[name] for name in self._features]] = added[:, : len(self._features)]
        return by_feature


def _list_features(facts: Facts) -> tuple[str, ...]:
    """The columns that are features: all but the interval and, in version 1, those of the family."""
    return tuple(name for name in facts.columns[:-1] if name not in COLUMNS)


def _fits(facts: Facts) -> bool:
    """Whether the features that a bundle reads are measured as they were when it was trained."""
    try:
        return facts.schema == schema_hash(_list_features(facts))
    except KeyError:
        return False


def save(
    folder: Path,
    facts: Facts,
    booster: lgb.Booster,
    card: str,
    reference: Reference | None = None,
    landmarks: bytes | None = None,
) -> None:
    """Write a bundle. The folder is made; files of an older bundle in it are replaced."""
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
    """What `models.landmark_file` wrote into a bundle; None where it has none. Raises CorruptBundle."""
    return _verified(folder, (LANDMARKS,)).get(LANDMARKS)


def trees_hash(booster_text: str) -> str:
    """SHA-256 of the trees alone: LightGBM's text also records parameters such as the number of threads."""
    return hashlib.sha256(booster_text.split("\nparameters:")[0].encode()).hexdigest()


def _verified(folder: Path, optional: Sequence[str] = (REFERENCE,)) -> dict[str, bytes]:
    """The files that a bundle has to have, and those of `optional` that it has."""
    sums = folder / SUMS
    if not sums.is_file():
        raise CorruptBundle(
            f"{folder} holds no bundle (no SHA256SUMS); name a folder made by `predrain train --out`."
        )
    lines = [line.split("  ", 1) for line in sums.read_text(errors="replace").splitlines()]
    if any(len(line) != 2 for line in lines):
        raise CorruptBundle(f"{sums} has a line that is no checksum; restore the bundle or train it anew.")
    wanted = {name: digest for digest, name in lines}
    texts: dict[str, bytes] = {}
    there = [name for name in optional if name in wanted or (folder / name).exists()]
    for name in (*FILES, *there):
        path = folder / name
        if not path.is_file() or path.stat().st_size > SIZE_MAX:
            raise CorruptBundle(f"{path} is missing or too large; restore the bundle or train it anew.")
        texts[name] = path.read_bytes()
        if hashlib.sha256(texts[name]).hexdigest() != wanted.get(name):
            raise CorruptBundle(f"{path} is not what SHA256SUMS says; restore the bundle or train it anew.")
    return texts
