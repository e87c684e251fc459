"""The fleet's own experience in the store, so that base rates and thresholds outlive the process that learned
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import structlog

from predrain.data.store.store_port import Store

if TYPE_CHECKING:
    from predrain.models.forecast.experience import FleetExperience

ROOM = "experience"
"""The room of the store's notes that holds one document for each bundle, by its fingerprint."""


def save_experience(store: Store, fingerprint: str, experience: FleetExperience) -> None:
    """Store what one bundle has learned from this fleet; nothing is written if nothing changed."""
    document = msgspec.json.encode(experience, order="deterministic")
    if store.read_notes(ROOM).get(fingerprint) != document:
        store.write_notes(ROOM, {fingerprint: document})


def load_experience(store: Store, fingerprint: str) -> FleetExperience:
    """Return the stored experience; an empty one if there is none or it is broken (the next count replaces it)."""
    from predrain.models.forecast.experience import FleetExperience

    document = store.read_notes(ROOM).get(fingerprint)
    if document is None:
        return FleetExperience()
    try:
        return msgspec.json.decode(document, type=FleetExperience)
    except msgspec.DecodeError as error:
        structlog.get_logger().warning("the experience of this fleet cannot be read", reason=str(error))
        return FleetExperience()
