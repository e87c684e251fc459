"""Comparisons of plans by the figures that a person reads. Without numpy, for REST answers of a service that starts."""

from __future__ import annotations

from itertools import starmap

from predrain.data.drain import Plan

TOLERANCE = 0.05
"""If a number of a plan changes by more than this share, the plan is shown again before anything starts."""


def read_alike(old: Plan | None, new: Plan) -> bool:
    """Return whether a person would read both plans as the same."""
    if old is None or (old.mechanic, old.refusals) != (new.mechanic, new.refusals):
        return False
    figures = (
        (one.bytes, one.eta_hours, one.fullest_after, one.cluster_after, one.survives) for one in (old, new)
    )
    return not any(starmap(is_noticeably_different, zip(*figures, strict=True)))


def is_noticeably_different(before: float | None, after: float | None) -> bool:
    """Return whether the person who approves a plan would read two numbers as different.

    A number that became known or unknown is different.
    """
    if before is None or after is None:
        return before is not after
    return abs(after - before) > TOLERANCE * max(abs(before), abs(after))
