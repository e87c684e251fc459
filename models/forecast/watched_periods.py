"""The periods in which the drives of landmarks were watched: until their source ends, and again in a later source.

A drive in a later source survived the time between. The outcome of a drive that is not in it is unknown. So the
second period begins with the first day in that source, as a delayed entry, and the time between counts for no
drive.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from predrain.data.lifespan import HistorySource
from predrain.models.forecast.landmarks import Landmarks
from predrain.models.forecast.life_expectancy import WatchedPeriods


def watches_of(parts: Sequence[Landmarks], sources: Sequence[HistorySource]) -> list[WatchedPeriods]:
    """Return the watched periods of the landmarks of all sources, joined in this order. parts[i] comes from
    sources[i]."""
    first: list[WatchedPeriods] = []
    again: list[WatchedPeriods] = []
    for landmarks in parts:
        first.append(
            WatchedPeriods(np.zeros(len(landmarks)), landmarks.follow.astype(np.float64), landmarks.died)
        )
        again.append(_find_later_watches(landmarks, sources))
    return [
        WatchedPeriods(
            *(np.concatenate([getattr(each, name) for each in watch]) for name in WatchedPeriods.__slots__)
        )
        for watch in (first, again)
    ]


def _find_later_watches(landmarks: Landmarks, sources: Sequence[HistorySource]) -> WatchedPeriods:
    opens, closes = np.zeros(len(landmarks)), np.zeros(len(landmarks))
    died = np.zeros(len(landmarks), dtype=bool)
    end = landmarks.day + landmarks.follow
    for lifespans in (source.lifespans for source in sources):
        at = lifespans.find_positions(landmarks.serial)
        later = np.flatnonzero((at >= 0) & ~landmarks.died)
        later = later[lifespans.first[at[later]] > end[later]]
        opens[later] = lifespans.first[at[later]] - landmarks.day[later]
        closes[later] = lifespans.last[at[later]] - landmarks.day[later]
        died[later] = lifespans.died[at[later]]
    return WatchedPeriods(opens, closes, died)
