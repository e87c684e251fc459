"""This fleet's own experience in the store, so that base rates outlive the process that learned them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
import structlog

from data.store.port import Store

if TYPE_CHECKING:
    from models.experience import Experience

ROOM = "experience"
"""The room of the store's notes that holds one document for each bundle, by its fingerprint."""


def save_experience(store: Store, fingerprint: str, experience: Mapping[str, Experience]) -> None:
    """Keep what became of the drives that one bundle scored, by model; nothing is written where nothing changed."""
    document = msgspec.json.encode(experience, order="deterministic")
    if store.notes(ROOM).get(fingerprint) != document:
        store.note(ROOM, {fingerprint: document})


def load_experience(store: Store, fingerprint: str) -> Mapping[str, Experience]:
    """What `save_experience` kept; nothing where there is none, or where it is broken (the next count replaces it)."""
    from models.experience import Experience

    document = store.notes(ROOM).get(fingerprint)
    if document is None:
        return {}
    try:
        return msgspec.json.decode(document, type=dict[str, Experience])
    except msgspec.DecodeError as error:
        structlog.get_logger().warning("the experience of this fleet cannot be read", why=str(error))
        return {}
