"""The forecaster of a service: a bundle of predrain.models and the states of its drives."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from itertools import compress, islice
from pathlib import Path

import msgspec
import numpy as np

from predrain.data.ids import DeviceId
from predrain.data.lifespan import Lifespans
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.scorebook import ScorebookForecasts
from predrain.data.store import documents
from predrain.data.wire import InvalidValue
from predrain.features.drive_state import DriveState, compute_state_matrix, observe_reading
from predrain.features.feature_schema import schema_hash
from predrain.features.state_packing import pack_drive_state, unpack_drive_state
from predrain.models.deploy.bundle_trial import BundleTrials
from predrain.models.forecast.bundle import Bundle, trees_hash
from predrain.models.forecast.calibration import Thresholds
from predrain.models.forecast.drift import FamilyDrift, is_watched_long_enough, measure_drift
from predrain.models.forecast.drive_family import MAKERS, maker_of
from predrain.models.forecast.experience import FleetExperience, learn_from_fleet
from predrain.models.forecast.outlooks import build_outlooks
from predrain.models.forecast.rules import judge_by_rules

HEARD = 7
"""Days since its last reading after which a drive says nothing about its family today."""
_DRIVES_AT_ONCE = 2_000
"""Drives whose features are computed together, which takes 5 kB for each of them for a moment."""


def _span_of_read_days(state: DriveState) -> tuple[int, int]:
    """Return the first and the last day on which the drive was read; (0, 0) if no drift is measured of the drive."""
    if state.face is None or not len(state.latest) or judge_by_rules(state) is not None:
        return 0, 0
    return state.first_day, state.day


class BundledForecaster:
    """`service.forecasting.forecaster.Forecaster` over a loaded bundle and its rules."""

    def __init__(self, bundle: Bundle) -> None:
        self._loaded = self._bundle = bundle
        self._experience = FleetExperience()
        self._layout = f"{version('predrain')}/{schema_hash()}"
        trees = trees_hash(bundle.booster.model_to_string())
        whole = hashlib.sha256(trees.encode() + msgspec.json.encode(bundle.facts, order="deterministic"))
        self._fingerprint = f"{bundle.name}-{whole.hexdigest()[:12]}"

    @classmethod
    def load(cls, path: Path | None = None, tried: Path | None = None) -> BundledForecaster:
        """Load the bundle in `path`, or the one that ships. Raises models.forecast.bundle.CorruptBundle.

        tried: the file of verdicts about bundles from outside; None if `path` was checked before.
        """
        if tried is not None:
            BundleTrials(tried).check(path)
        return cls(Bundle.load(path, threads=1))

    @property
    def name(self) -> str:
        """The bundle's name."""
        return self._bundle.name

    @property
    def fingerprint(self) -> str:
        """The name and a hash of the trees and of everything applied to them: calibration, thresholds, rates."""
        return self._fingerprint

    @property
    def layout(self) -> str:
        """The release and the hash of its features: either may change how a drive is read."""
        return self._layout

    def pack(self, state: DriveState) -> bytes:
        """Return a drive's state as bytes."""
        return documents.compress_document(pack_drive_state(state))

    def unpack(self, packed: bytes) -> DriveState | None:
        """Return the state from bytes; None if they are broken or of another layout."""
        try:
            return unpack_drive_state(documents.decompress_document(packed))
        except (ValueError, InvalidValue):
            return None

    def fold(self, state: DriveState | None, readings: Sequence[Reading]) -> DriveState:
        """Return the state of a device after `readings`, of which there is at least one."""
        for reading in readings:
            state = observe_reading(state, reading)
        assert state is not None
        return state

    def compute_outlooks(
        self, states: Sequence[DriveState], now: datetime, before: Mapping[DeviceId, Outlook]
    ) -> Sequence[Outlook]:
        """Return one outlook per state, as of its newest reading."""
        return build_outlooks(self._bundle, states, now, before)

    @property
    def experience(self) -> FleetExperience:
        """The experience from this fleet that is in use."""
        return self._experience

    @property
    def thresholds(self) -> Thresholds:
        """The chances within 30 days from which a disk is called a warning, and bad."""
        return self._bundle.facts.thresholds

    def count_experience(self, book: ScorebookForecasts, lives: Lifespans, day: int) -> FleetExperience:
        """Count the experience of this fleet up to `day`: deaths by model, and the chances that its healthy disks
        reached.
        """
        return learn_from_fleet(book, lives, self._loaded.facts.thresholds, day)

    def learn_experience(self, experience: FleetExperience) -> None:
        """Apply this fleet's base rates and thresholds to the loaded bundle."""
        self._experience = experience
        self._bundle = self._loaded.update_rates(experience.models).with_thresholds(experience.thresholds)

    def compute_family_survival(self, state: DriveState) -> tuple[float, ...] | None:
        """Return the survival curve of drives of the same model and age, regardless of this drive's counters."""
        if state.face is None or not len(state.latest):
            return None
        model = np.array([state.face.model], dtype=object)
        curve = self._bundle.forecast(
            compute_state_matrix([state], state.day), model, np.zeros(1, dtype=bool)
        ).survival[0]
        return tuple(float(p) for p in curve)

    def measure_family_drift(self, states: Collection[DriveState]) -> tuple[FamilyDrift, ...]:
        """Return how drives in service differ from those of the training, by family; drives judged by rules are
        left out.
        """
        spans = np.array([_span_of_read_days(state) for state in states], dtype=np.int64).reshape(-1, 2)
        day = int(spans[:, 1].max(initial=0))
        wanted = spans[:, 1] > max(0, day - HEARD)
        wanted[wanted] = is_watched_long_enough(spans[wanted, 0].tolist(), day)
        if not wanted.any():
            return ()
        x, models, chances = [], [], []
        mine = compress(states, wanted.tolist())
        while some := list(islice(mine, _DRIVES_AT_ONCE)):
            x.append(compute_state_matrix(some, day))
            model = np.array([state.face.model if state.face else "" for state in some], dtype=object)
            models.append(model)
            chances.append(self._bundle.forecast(x[-1], model, np.ones(len(some), dtype=bool)).p_fail[:, 2])
        return measure_drift(
            self._bundle.reference,
            np.concatenate(x),
            np.concatenate(models),
            np.concatenate(chances),
        )

    def find_family(self, model: str) -> str:
        """Return the model or maker in the bundle's reference; without a reference the maker."""
        if self._bundle.reference is not None:
            return self._bundle.reference.find_family(model)
        maker = maker_of(model)
        return "" if maker is None else MAKERS[maker]
