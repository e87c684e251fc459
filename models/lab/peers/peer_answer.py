"""The answer of a peer: a score to rank by and, if the peer has one, an alarm of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.arrays import Bools, Floats, Texts


class NotComputable(Exception):
    """A peer cannot be computed. The text is one sentence that says what is missing."""


@dataclass(frozen=True, slots=True)
class PeerVerdict:
    """A peer's score (rows,), NaN where it does not judge the drive, and its status."""

    score: Floats
    status: Texts | None = None
    """(rows,) `bad`, `warning` or `good`; None for a peer that only ranks."""
    note: str = ""
    """A sentence that names the inputs that the peer lacked."""


def status_of(bad: Bools, warning: Bools | None = None) -> Texts:
    """Return `bad` where bad, else `warning` where warning, else `good`: (rows,)."""
    mild = np.zeros(len(bad), dtype=bool) if warning is None else warning
    return np.where(bad, "bad", np.where(mild, "warning", "good")).astype(object)
