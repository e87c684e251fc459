"""The port of forecasters: the state that a forecaster keeps of each disk, and the outlooks that it makes of
states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import structlog

from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Reason, Status, hold_severity
from predrain.data.reading import Reading

if TYPE_CHECKING:
    from predrain.data.lifespan import Lifespans
    from predrain.data.scorebook import ScorebookForecasts
    from predrain.models.forecast.calibration import Thresholds
    from predrain.models.forecast.drift import FamilyDrift
    from predrain.models.forecast.experience import FleetExperience

State = TypeVar("State")
Seen = tuple[Reading, State]
"""A reading, and the state of its device after it."""


class Forecaster(Protocol[State]):
    """A bundle with its rules. Between two calls of `learn_experience` the same readings give the same outlooks."""

    @property
    def name(self) -> str:
        """The bundle's name, as outlooks quote it."""
        ...

    @property
    def fingerprint(self) -> str:
        """An id that distinguishes two bundles of one name."""
        ...

    @property
    def layout(self) -> str:
        """The name of the format of states: states of another layout are computed again from their readings."""
        ...

    def pack(self, state: State) -> bytes:
        """Return a state as bytes, which this layout unpacks."""
        ...

    def unpack(self, packed: bytes) -> State | None:
        """Return the state from bytes; None if they are not of this layout."""
        ...

    def fold(self, state: State | None, readings: Sequence[Reading]) -> State:
        """Return the state of a device after `readings` (one or more, by time). `state`: before them; None: no
        reading yet.
        """
        ...

    def compute_outlooks(
        self, states: Sequence[State], now: datetime, before: Mapping[DeviceId, Outlook]
    ) -> Sequence[Outlook]:
        """Return one outlook per state, as of its newest reading; its trust continues from the outlook in
        `before`.

        If a device was read several times on the day of `now`, its older states come first.
        """
        ...

    def compute_family_survival(self, state: State) -> tuple[float, ...] | None:
        """Return the survival on the fixed grid by model and age alone; None if the family is unknown."""
        ...

    @property
    def experience(self) -> FleetExperience:
        """The experience from this fleet that is in use."""
        ...

    @property
    def thresholds(self) -> Thresholds:
        """The chances within 30 days from which a disk is called a warning, and bad."""
        ...

    def count_experience(self, book: ScorebookForecasts, lives: Lifespans, day: int) -> FleetExperience:
        """Count the experience of this fleet up to `day` (days since 1970-01-01).

        book: this bundle's forecasts. lives: by device id, as far as they are known.
        """
        ...

    def learn_experience(self, experience: FleetExperience) -> None:
        """Apply this fleet's base rates and thresholds to the bundle, in place of any earlier experience."""
        ...

    def measure_family_drift(self, states: Collection[State]) -> tuple[FamilyDrift, ...]:
        """Return how drives in service differ from those of the training, by family."""
        ...

    def find_family(self, model: str) -> str:
        """Return the family by which drives of this model are monitored; "" if the bundle does not know the
        model.
        """
        ...


class FallbackForecaster(Generic[State]):
    """Scores many devices at once, and one by one if that fails, so that no device stops the others."""

    def __init__(self, forecaster: Forecaster[State]) -> None:
        self._forecaster = forecaster

    def compute_outlooks(
        self, seen: Sequence[Seen[State]], before: Mapping[DeviceId, Outlook]
    ) -> Sequence[Outlook]:
        """Return the forecaster's outlooks for readings of one day; a device that cannot be scored is `unknown`,
        with a reason.
        """
        now = max(reading.taken_at for reading, _ in seen)
        try:
            return self._forecaster.compute_outlooks([state for _, state in seen], now, before)
        except Exception:  # noqa: BLE001  (whatever it is, the other devices must be scored)
            if len(seen) > 1:
                return self._one_by_one(seen, before)
            (reading, _), *_ = seen
            structlog.get_logger().exception("a device cannot be scored", device=reading.device)
            return [make_unscored_outlook(reading.device, reading.taken_at, before.get(reading.device))]

    def _one_by_one(
        self, seen: Sequence[Seen[State]], before: Mapping[DeviceId, Outlook]
    ) -> Sequence[Outlook]:
        last, made = dict(before), list[Outlook]()
        for one in seen:
            (outlook,) = self.compute_outlooks([one], last)
            last[outlook.device] = outlook
            made.append(outlook)
        return made


def make_unscored_outlook(device: DeviceId, as_of: datetime, before: Outlook | None = None) -> Outlook:
    """Return the outlook of a device on which the forecaster failed: unknown, never healthy."""
    sentence = "It could not be scored; the service's log has the traceback."
    return Outlook(
        device=device,
        as_of=as_of,
        status=Status.UNKNOWN,
        source="rule:not-scored",
        reasons=(Reason("not-scored", sentence),),
        prescription="Report this; until it is scored, watch the disk by hand.",
        held=hold_severity(Status.UNKNOWN, 0, before),
    )
