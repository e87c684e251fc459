"""Whether a plan is another one to the person who approves it."""

from __future__ import annotations

from itertools import starmap

from predrain.data.drain import Plan

TOLERANCE = 0.05
"""A number of a plan that moved by more than this share is shown again before anything starts."""


def read_alike(old: Plan | None, new: Plan) -> bool:
    """Whether a person who reads them would think them the same."""
    if old is None or (old.mechanic, old.refusals) != (new.mechanic, new.refusals):
        return False
    figures = (
        (one.bytes, one.eta_hours, one.fullest_after, one.cluster_after, one.survives) for one in (old, new)
    )
    return not any(starmap(apart, zip(*figures, strict=True)))


def apart(before: float | None, after: float | None) -> bool:
    """Whether a number of a plan is another one to who approves it, as one that became known or unknown is."""
    if before is None or after is None:
        return before is not after
    return abs(after - before) > TOLERANCE * max(abs(before), abs(after))
