"""The last announcement of each device, as notes of the store.

The log is read back only as far as its newest records. The notes are one for each device, so that a start repeats no
announcement of a fleet of any size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import structlog

from predrain.data.ids import DeviceId
from predrain.data.outlook import GRAVITY, Outlook
from predrain.data.store import documents
from predrain.data.store.store_port import Store
from predrain.data.wire import InvalidValue
from predrain.service.streams.outlook_announcements import Announcements, can_follow_announcement

ROOM = "announced"
"""The namespace of the notes."""


def write_announced(store: Store, announced: Iterable[Outlook]) -> None:
    """Note the outlooks, each announced last for its device, without their survival curves. Raises what the store
    raises.
    """
    store.write_notes(
        ROOM, {one.device: documents.OUTLOOK.write(replace(one, survival=None)) for one in announced}
    )


def read_announced(store: Store) -> dict[DeviceId, Outlook]:
    """Return the outlook that was announced last for each device. A note that cannot be read is logged and skipped.

    Raises what the store raises.
    """
    found = {}
    for device, raw in store.read_notes(ROOM).items():
        try:
            found[DeviceId(device)] = documents.OUTLOOK.read(raw)
        except InvalidValue as invalid:
            structlog.get_logger().warning(
                "a kept announcement cannot be read", device=device, reason=str(invalid)
            )
    return found


def recall_announced(store: Store, announcements: Announcements) -> None:
    """Remember the last announcement of each device, and note those that the notes do not have yet.

    Call it after the newest announcements of the log were remembered. A process that ended between an announcement
    and its note leaves such a one behind, and so does a release that kept no notes.

    Raises what the store raises.
    """
    kept = read_announced(store)
    announcements.remember_announced(kept.values())
    known = announcements.list_announced_outlooks()
    if known and not kept:
        # An earlier release announced each outlook before it stored it, and the log may hold more announcements than
        # are read back.
        graver = [one for one in store.latest_outlooks().values() if GRAVITY[one.severity]]
        announcements.remember_announced(one for one in graver if one.device not in known)
        known = announcements.list_announced_outlooks()
    behind = [
        one
        for device, one in known.items()
        if device not in kept or can_follow_announcement(one, kept[device])
    ]
    if behind:
        write_announced(store, behind)
