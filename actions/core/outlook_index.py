"""`OutlookIndex`: the outlooks of a cluster's disks with what follows from them, computed once for each new outlook.

A disk is read once an hour or once a day, and a controller polls every few seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from predrain.data.identity_memo import holds_same_objects
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status


class OutlookIndex:
    """The newest outlook of each device at one instant. An instance never changes."""

    def __init__(self, outlooks: Mapping[DeviceId, Outlook]) -> None:
        self.outlooks: Mapping[DeviceId, Outlook] = dict(outlooks)

    @cached_property
    def bad(self) -> frozenset[DeviceId]:
        """The devices whose severity is bad."""
        return frozenset(
            device for device, outlook in self.outlooks.items() if outlook.severity is Status.BAD
        )


class _KnownIndex:
    """The index that was asked for last."""

    def __init__(self) -> None:
        self._last = OutlookIndex({})

    def find(self, outlooks: Mapping[DeviceId, Outlook]) -> OutlookIndex:
        last = self._last
        if not holds_same_objects(last.outlooks, outlooks):
            last = self._last = OutlookIndex(outlooks)
        return last


_KNOWN_INDEX = _KnownIndex()


def find_outlook_index(outlooks: Mapping[DeviceId, Outlook]) -> OutlookIndex:
    """Return the index of these outlooks: the last one, if it has the same outlooks. The mapping may change later."""
    return _KNOWN_INDEX.find(outlooks)
