"""The forecaster that a service runs with: a bundle of the models room and the states of its drives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np

from predrain.data.ids import DeviceId
from predrain.data.lifespan import Lifespans
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.scorebook import ScorebookForecasts
from predrain.data.store import documents
from predrain.data.wire import Misshapen
from predrain.features.packing import pack, unpack
from predrain.features.schema import schema_hash
from predrain.features.state import DriveState, matrix, observe
from predrain.models.bundle import Bundle, trees_hash
from predrain.models.bundle_trial import Trials
from predrain.models.calibrate import Thresholds
from predrain.models.drift import FamilyDrift, drift, watched
from predrain.models.experience import FleetExperience, learn_from_fleet
from predrain.models.family import MAKERS, maker_of
from predrain.models.outlooks import outlooks
from predrain.models.rules import judge

HEARD = 7
"""Days since its last reading after which a drive says nothing of its family today."""


class BundledForecaster:
    """`service.scoring.forecasting.Forecaster` over a loaded bundle and its rules."""

    def __init__(self, bundle: Bundle) -> None:
        self._loaded = self._bundle = bundle
        self._experience = FleetExperience()
        self._layout = f"{version('predrain')}/{schema_hash()}"
        trees = trees_hash(bundle.booster.model_to_string())
        whole = hashlib.sha256(trees.encode() + msgspec.json.encode(bundle.facts, order="deterministic"))
        self._fingerprint = f"{bundle.name}-{whole.hexdigest()[:12]}"

    @classmethod
    def load(cls, path: Path | None = None, tried: Path | None = None) -> BundledForecaster:
        """The bundle in `path`, or the one that ships. Raises models.bundle.CorruptBundle.

        tried: where verdicts about bundles from outside are remembered; None where `path` was tried before.
        """
        if tried is not None:
            Trials(tried).check(path)
        return cls(Bundle.load(path, threads=1))

    @property
    def name(self) -> str:
        """The bundle's name."""
        return self._bundle.name

    @property
    def fingerprint(self) -> str:
        """The name and a hash of the trees and all that is laid over them: calibration, thresholds, rates."""
        return self._fingerprint

    @property
    def layout(self) -> str:
        """The release and the features that its bundles know: either may read a drive in another way."""
        return self._layout

    def pack(self, state: DriveState) -> bytes:
        """A drive's state as bytes."""
        return documents.packed(pack(state))

    def unpack(self, packed: bytes) -> DriveState | None:
        """The state from bytes; None when they are broken or of another layout."""
        try:
            return unpack(documents.unpacked(packed))
        except (ValueError, Misshapen):
            return None

    def fold(self, state: DriveState | None, readings: Sequence[Reading]) -> DriveState:
        """What is remembered after `readings`, of which there is at least one."""
        for reading in readings:
            state = observe(state, reading)
        assert state is not None
        return state

    def outlooks(
        self, states: Sequence[DriveState], now: datetime, before: Mapping[DeviceId, Outlook]
    ) -> Sequence[Outlook]:
        """One outlook a state, as of its newest reading."""
        return outlooks(self._bundle, states, now, before)

    @property
    def experience(self) -> FleetExperience:
        """What was learned from this fleet, and counts now."""
        return self._experience

    @property
    def thresholds(self) -> Thresholds:
        """The chances within 30 days from which a disk is called a warning, and bad."""
        return self._bundle.facts.thresholds

    def count_experience(self, book: ScorebookForecasts, lives: Lifespans, day: int) -> FleetExperience:
        """What this fleet teaches up to `day`: deaths by model, and what its healthy disks reached."""
        return learn_from_fleet(book, lives, self._loaded.facts.thresholds, day)

    def learn_experience(self, experience: FleetExperience) -> None:
        """Lay base rates and thresholds of this fleet over the loaded bundle's."""
        self._experience = experience
        self._bundle = self._loaded.update_rates(experience.models).with_thresholds(experience.thresholds)

    def family(self, state: DriveState) -> tuple[float, ...] | None:
        """The curve of drives of the same model and age, whatever this one's counters say."""
        if state.face is None or not len(state.latest):
            return None
        model = np.array([state.face.model], dtype=object)
        curve = self._bundle.forecast(matrix([state], state.day), model, np.zeros(1, dtype=bool)).survival[0]
        return tuple(float(p) for p in curve)

    def drift(self, states: Iterable[DriveState]) -> tuple[FamilyDrift, ...]:
        """How drives in service differ from those of the training, by family; those of rules are left out."""
        read = [
            state for state in states if state.face is not None and len(state.latest) and judge(state) is None
        ]
        day = max((state.day for state in read), default=0)
        heard = [state for state in read if state.day > day - HEARD]
        long = watched([state.first_day for state in heard], day)
        mine = [state for state, enough in zip(heard, long, strict=True) if enough]
        if not mine:
            return ()
        x = matrix(mine, day)
        model = np.array([state.face.model if state.face else "" for state in mine], dtype=object)
        forecast = self._bundle.forecast(x, model, np.ones(len(mine), dtype=bool))
        return drift(self._bundle.reference, x, model, forecast.p_fail[:, 2])

    def group(self, model: str) -> str:
        """The model or maker in the bundle's reference; without one the maker."""
        if self._bundle.reference is not None:
            return self._bundle.reference.group(model)
        maker = maker_of(model)
        return "" if maker is None else MAKERS[maker]
