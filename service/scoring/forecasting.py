"""How the worker is told a future: what a forecaster remembers of each disk, and what it makes of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import structlog

from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Reason, Status, hold_severity
from predrain.data.reading import Reading

if TYPE_CHECKING:
    from predrain.data.lifespan import Lifespans
    from predrain.data.scorebook import ScorebookForecasts
    from predrain.models.calibrate import Thresholds
    from predrain.models.drift import FamilyDrift
    from predrain.models.experience import FleetExperience

State = TypeVar("State")
Seen = tuple[Reading, State]
"""A reading, and what is remembered of its device after it."""


class Forecaster(Protocol[State]):
    """A bundle with its rules. Between two calls of `learn_experience` the same readings give the same outlooks."""

    @property
    def name(self) -> str:
        """The bundle's name, as outlooks quote it."""
        ...

    @property
    def fingerprint(self) -> str:
        """Tells two bundles of one name apart."""
        ...

    @property
    def layout(self) -> str:
        """Names how states are made and packed: another layout's are made anew from their readings."""
        ...

    def pack(self, state: State) -> bytes:
        """A state as bytes, which this layout unpacks."""
        ...

    def unpack(self, packed: bytes) -> State | None:
        """The state from bytes; None when they are none of this layout's."""
        ...

    def fold(self, state: State | None, readings: Sequence[Reading]) -> State:
        """What is remembered of a device after `readings` (one or more, by time); None: nothing yet."""
        ...

    def outlooks(
        self, states: Sequence[State], now: datetime, before: Mapping[DeviceId, Outlook]
    ) -> Sequence[Outlook]:
        """One outlook a state, as of its newest reading; trust counts on from the ones `before`.

        Of a device that was read several times on the day of `now`, the older states stand first.
        """
        ...

    def family(self, state: State) -> tuple[float, ...] | None:
        """Survival on the fixed grid by model and age alone; None where the family is not known."""
        ...

    @property
    def experience(self) -> FleetExperience:
        """What was learned from this fleet, and counts now."""
        ...

    @property
    def thresholds(self) -> Thresholds:
        """The chances within 30 days from which a disk is called a warning, and bad."""
        ...

    def count_experience(self, book: ScorebookForecasts, lives: Lifespans, day: int) -> FleetExperience:
        """What this fleet teaches up to `day` (days since 1970-01-01). book: this bundle's forecasts. lives: by device
        id, as far as they are known."""
        ...

    def learn_experience(self, experience: FleetExperience) -> None:
        """Lay base rates and thresholds of this fleet over the bundle's; they count from then on, in place of what was
        learned before."""
        ...

    def drift(self, states: Iterable[State]) -> tuple[FamilyDrift, ...]:
        """How drives in service differ from those of the training, by family."""
        ...

    def group(self, model: str) -> str:
        """The family by which drives of this model are watched; "" for those that the bundle knows nothing of."""
        ...


class Patient(Generic[State]):
    """Scores many devices at once, and one by one when that fails, so that no device stops the others."""

    def __init__(self, forecaster: Forecaster[State]) -> None:
        self._forecaster = forecaster

    def outlooks(self, scene: Sequence[Seen[State]], before: Mapping[DeviceId, Outlook]) -> Sequence[Outlook]:
        """As the forecaster's, of readings of one day; a device that cannot be scored is `unknown` and says why."""
        now = max(reading.taken_at for reading, _ in scene)
        try:
            return self._forecaster.outlooks([state for _, state in scene], now, before)
        except Exception:  # noqa: BLE001  (whatever it is, the other devices must be scored)
            if len(scene) > 1:
                return self._one_by_one(scene, before)
            (reading, _), *_ = scene
            structlog.get_logger().exception("a device cannot be scored", device=reading.device)
            return [unscored(reading.device, reading.taken_at, before.get(reading.device))]

    def _one_by_one(
        self, scene: Sequence[Seen[State]], before: Mapping[DeviceId, Outlook]
    ) -> Sequence[Outlook]:
        last, made = dict(before), list[Outlook]()
        for one in scene:
            (outlook,) = self.outlooks([one], last)
            last[outlook.device] = outlook
            made.append(outlook)
        return made


def unscored(device: DeviceId, as_of: datetime, before: Outlook | None = None) -> Outlook:
    """The outlook of a device that the forecaster failed on: unknown, never healthy."""
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
