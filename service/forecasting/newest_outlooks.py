"""The newest outlook of each device, as far as the next outlook builds on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.residence import Residence


class NewestOutlooks(Protocol):
    """The memory of a worker: it gives the previous outlook of a device and takes new ones."""

    def update_newest(self, readings: Iterable[Reading], outlooks: Iterable[Outlook]) -> None:
        """Replace older readings and outlooks by newer ones; an older one changes nothing."""
        ...

    def outlook(self, device: DeviceId) -> Outlook | None:
        """Return the newest outlook of one device."""
        ...

    def update_residences(self, residences: Mapping[DeviceId, Residence]) -> None:
        """Take over new residences, and forget a separate history that was joined again."""
        ...

    def forget(self, device: DeviceId) -> None:
        """Forget a device that is no longer a separate one, or that is to be judged again."""
        ...


class NewestOutlookSummaries:
    """The memory of a process that shows no outlook: without reasons, curve and readings, which take most memory."""

    def __init__(self) -> None:
        self._outlooks: dict[DeviceId, Outlook] = {}

    def update_newest(self, readings: Iterable[Reading], outlooks: Iterable[Outlook]) -> None:  # noqa: ARG002
        """Replace older outlooks by newer ones; an older one changes nothing."""
        for one in outlooks:
            before = self._outlooks.get(one.device)
            if before is None or before.as_of <= one.as_of:
                self._outlooks[one.device] = Outlook(
                    one.device,
                    one.as_of,
                    one.status,
                    one.source,
                    reasons=(),
                    prescription="",
                    readings=one.readings,
                    span_hours=one.span_hours,
                    held=one.held,
                )

    def update_residences(self, residences: Mapping[DeviceId, Residence]) -> None:
        """Do nothing, since this process shows no residence."""

    def forget(self, device: DeviceId) -> None:
        """Forget a device that is no longer a separate one, or that is to be judged again."""
        self._outlooks.pop(device, None)

    def outlook(self, device: DeviceId) -> Outlook | None:
        """Return the newest outlook of one device: its time, its status, and for how long readings have confirmed
        it.
        """
        return self._outlooks.get(device)
