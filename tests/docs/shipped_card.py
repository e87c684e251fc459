"""The card of a bundle, written again from its own facts, with its checksum; nothing else of the bundle changes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from predrain.models.deploy.model_card import card_of
from predrain.models.forecast.bundle import SUMS, Bundle

CARD = "CARD.md"


def expected_card(bundle: Path) -> str:
    """The card that the code writes for this bundle. Raises models.forecast.bundle.CorruptBundle."""
    return card_of(Bundle.load(bundle).facts)


def replace_card(bundle: Path, card: str) -> None:
    """Write a card and its line of SHA256SUMS. Raises models.forecast.bundle.CorruptBundle where the bundle
    was changed.
    """
    Bundle.load(bundle)
    (bundle / CARD).write_bytes(card.encode())
    lines = (bundle / SUMS).read_text().splitlines()
    mine = f"{hashlib.sha256(card.encode()).hexdigest()}  {CARD}"
    (bundle / SUMS).write_text("".join(f"{mine if line.endswith(CARD) else line}\n" for line in lines))
