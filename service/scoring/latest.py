"""The newest outlook of each device, as far as the next one counts on from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.residence import Residence


class Latest(Protocol):
    """Where a worker finds the outlook before, and hands in what is new."""

    def take(self, readings: Iterable[Reading], outlooks: Iterable[Outlook]) -> None:
        """Newer ones replace older ones; an older one changes nothing."""
        ...

    def outlook(self, device: DeviceId) -> Outlook | None:
        """The newest outlook of one device."""
        ...

    def settle(self, residences: Mapping[DeviceId, Residence]) -> None:
        """Where disks live now; a history that is kept apart no more is forgotten."""
        ...

    def forget(self, device: DeviceId) -> None:
        """A device that is one no more, or that is to be judged anew."""
        ...


class Gist:
    """For a process that shows no outlook: without reasons, curve and readings, which are most of a drive's memory."""

    def __init__(self) -> None:
        self._outlooks: dict[DeviceId, Outlook] = {}

    def take(self, readings: Iterable[Reading], outlooks: Iterable[Outlook]) -> None:  # noqa: ARG002
        """Newer ones replace older ones; an older one changes nothing."""
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

    def settle(self, residences: Mapping[DeviceId, Residence]) -> None:
        """Nothing is shown here."""

    def forget(self, device: DeviceId) -> None:
        """A device that is one no more, or that is to be judged anew."""
        self._outlooks.pop(device, None)

    def outlook(self, device: DeviceId) -> Outlook | None:
        """The newest outlook of one device: its time, its status, and for how long that has been borne out."""
        return self._outlooks.get(device)
