"""When the drives of landmarks were watched: until their source ends, and again where a later source sees them.

A drive that a later source holds survived the time between; of one that it does not hold nothing is known. So the
second watch begins with the first day there, as a delayed entry: the time between counts for nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from predrain.data.lifespan import HistorySource
from predrain.models.landmarks import Landmarks
from predrain.models.life import WatchedPeriods


def watches_of(parts: Sequence[Landmarks], sources: Sequence[HistorySource]) -> list[WatchedPeriods]:
    """Watches of the landmarks of all sources, joined in this order; parts[i] was drawn from sources[i]."""
    first: list[WatchedPeriods] = []
    again: list[WatchedPeriods] = []
    for landmarks in parts:
        first.append(
            WatchedPeriods(np.zeros(len(landmarks)), landmarks.follow.astype(np.float64), landmarks.died)
        )
        again.append(_again(landmarks, sources))
    return [
        WatchedPeriods(
            *(np.concatenate([getattr(each, name) for each in watch]) for name in WatchedPeriods.__slots__)
        )
        for watch in (first, again)
    ]


def _again(landmarks: Landmarks, sources: Sequence[HistorySource]) -> WatchedPeriods:
    opens, closes = np.zeros(len(landmarks)), np.zeros(len(landmarks))
    died = np.zeros(len(landmarks), dtype=bool)
    end = landmarks.day + landmarks.follow
    for lifespans in (source.lifespans for source in sources):
        at = lifespans.of(landmarks.serial)
        later = np.flatnonzero((at >= 0) & ~landmarks.died)
        later = later[lifespans.first[at[later]] > end[later]]
        opens[later] = lifespans.first[at[later]] - landmarks.day[later]
        closes[later] = lifespans.last[at[later]] - landmarks.day[later]
        died[later] = lifespans.died[at[later]]
    return WatchedPeriods(opens, closes, died)
