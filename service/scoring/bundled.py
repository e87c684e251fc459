"""The forecaster that a service runs with: a bundle of the models room and the states of its drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

from data.ids import DeviceId
from data.outlook import Outlook
from data.reading import Reading
from features.schema import schema_hash
from features.state import DriveState, matrix, observe, pack, unpack
from models.bundle import Bundle, trees_hash
from models.outlooks import outlooks


class BundledForecaster:
    """`service.scoring.forecasting.Forecaster` over a loaded bundle and its rules."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._layout = f"{version('predrain')}/{schema_hash()}"

    @classmethod
    def load(cls, path: Path | None = None) -> BundledForecaster:
        """The bundle in `path`, or the one that ships. Raises models.bundle.CorruptBundle."""
        return cls(Bundle.load(path, threads=1))

    @property
    def name(self) -> str:
        """The bundle's name."""
        return self._bundle.name

    @property
    def fingerprint(self) -> str:
        """The name and a hash of the trees."""
        return f"{self.name}-{trees_hash(self._bundle.booster.model_to_string())[:12]}"

    @property
    def layout(self) -> str:
        """The release and the features that its bundles know: either may read a drive in another way."""
        return self._layout

    def pack(self, state: DriveState) -> bytes:
        """A drive's state as bytes."""
        return pack(state)

    def unpack(self, packed: bytes) -> DriveState | None:
        """The state from bytes; None when they are broken or of another layout."""
        try:
            return unpack(packed)
        except ValueError:
            return None

    def fold(self, state: DriveState | None, readings: Sequence[Reading]) -> DriveState:
        """What is remembered after `readings`, of which there is at least one."""
        for reading in readings:
            state = observe(state, reading)
        assert state is not None
        return state

    def outlooks(
        self, states: Mapping[DeviceId, DriveState], now: datetime, before: Mapping[DeviceId, Outlook]
    ) -> Sequence[Outlook]:
        """One outlook a device, as of its newest reading."""
        return outlooks(self._bundle, list(states.values()), now, before)

    def family(self, state: DriveState) -> tuple[float, ...] | None:
        """The curve of drives of the same model and age, whatever this one's counters say."""
        if state.face is None or not len(state.latest):
            return None
        model = np.array([state.face.model], dtype=object)
        if not self._bundle.facts.rates.knows(state.face.model):
            return None
        curve = self._bundle.forecast(matrix([state], state.day), model, np.zeros(1, dtype=bool)).survival[0]
        return tuple(float(p) for p in curve)
