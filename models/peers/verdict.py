"""What a peer answers: a score to rank by and, where it has one, an alarm of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.arrays import Bools, Floats, Texts


class NotComputable(Exception):
    """Its text is one sentence that says what is lacking."""


@dataclass(frozen=True, slots=True)
class PeerVerdict:
    """A score (rows,), NaN where the peer does not judge the drive, and its words."""

    score: Floats
    status: Texts | None = None
    """(rows,) `bad`, `warning` or `good`; None for a peer that only ranks."""
    note: str = ""
    """What it had to do without, as a sentence."""


def status_of(bad: Bools, warning: Bools | None = None) -> Texts:
    """(rows,) `bad` where bad, else `warning` where warning, else `good`."""
    mild = np.zeros(len(bad), dtype=bool) if warning is None else warning
    return np.where(bad, "bad", np.where(mild, "warning", "good")).astype(object)
