"""The one feature schema: names, units, definitions, and a hash that a bundle must agree with.

A feature is a function of accumulated rows (`features.drive_history_rows`): the row that holds on the landmark day, and
the rows that held some days before it. No feature depends on the number of rows, on their spacing, or on the
day when watching began, because these reveal the source and the future. `measure` is the only place where a
feature is computed, for batch and stream alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.drive_history_rows import COUNTERS, NEVER, Floats

WINDOWS: Final = (1, 3, 7, 15, 30)
"""Lengths of the windows over which changes are measured, in days."""
LONG_AGO: Final = 90.0
"""Days after which a rise is "long ago". Longer times are set to this value, because histories differ in length."""
SECTORS_PER_GIB: Final = 2.0**21
NAMES: Final[Mapping[int, str]] = {
    5: "reallocated sectors",
    10: "spin retries",
    12: "power cycles",
    187: "reported uncorrectable errors",
    188: "command timeouts",
    189: "high-fly writes",
    196: "reallocation events",
    197: "pending sectors",
    198: "offline uncorrectable sectors",
    199: "CRC errors",
}


class LandmarkRows:
    """The accumulated rows that hold on the landmark day, and those that held `w` days before it."""

    def __init__(
        self,
        rows: Mapping[str, Floats],
        at: NDArray[np.int64],
        back: Mapping[int, NDArray[np.int64]],
        day: Floats,
    ) -> None:
        """Store the rows. at, back[w]: (pairs,) row numbers. day: (pairs,) landmark."""
        self._rows, self._at, self._back, self.day = rows, at, back, day
        self.span = {
            window: np.clip(day - rows["day"][row], 1.0, float(window)) for window, row in back.items()
        }
        """The (pairs,) days that each window really spans."""
        self._now: dict[str, Floats] = {}

    def get_current(self, column: str) -> Floats:
        """Return the values of the column on the landmark day."""
        if column not in self._now:
            self._now[column] = self._rows[column][self._at]
        return self._now[column]

    def get_earlier(self, column: str, window: int) -> Floats:
        """Return the values of the column `window` days before the landmark, or on the drive's first day if
        that is later."""
        return self._rows[column][self._back[window]]

    def compute_growth(self, column: str, window: int) -> Floats:
        """Return the growth of a running total over the window."""
        return self.get_current(column) - self.get_earlier(column, window)

    def compute_rise(self, smart_id: int, window: int) -> Floats:
        """Return the sum of increases over the window, or NaN while the counter is not reported."""
        return np.where(
            np.isnan(self.get_current(f"level_{smart_id}")),
            np.nan,
            self.compute_growth(f"risen_{smart_id}", window),
        )

    def compute_days_since(self, column: str) -> Floats:
        """Return the days since the day in the column, at most LONG_AGO, or NaN if the event has not happened."""
        on = self.get_current(column)
        return np.where(on == NEVER, np.nan, np.minimum(self.day - on, LONG_AGO))


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the feature matrix."""

    name: str
    unit: str
    definition: str
    measure: Callable[[LandmarkRows], Floats]


def _per_day(smart_id: int, window: int, scale: float) -> Callable[[LandmarkRows], Floats]:
    return lambda h: h.compute_rise(smart_id, window) / (h.span[window] * scale)


def _build_change_measure(smart_id: int, window: int) -> Callable[[LandmarkRows], Floats]:
    def change(h: LandmarkRows) -> Floats:
        week, month = (
            h.compute_rise(smart_id, window) / h.span[window],
            h.compute_rise(smart_id, 30) / h.span[30],
        )
        return np.where(month > 0, np.minimum(week / np.where(month > 0, month, 1.0), 10.0), np.nan)

    return change


def _mean_heat(window: int) -> Callable[[LandmarkRows], Floats]:
    def mean(h: LandmarkRows) -> Floats:
        heat, days = h.compute_growth("heat", window), h.compute_growth("warm_days", window)
        return np.where(days > 0, heat / np.where(days > 0, days, 1.0), h.get_current("level_194"))

    return mean


def _measure_power_hours(h: LandmarkRows) -> Floats:
    # The hours are counted on from the day of their last new value, because a row that only repeats an older
    # value adds no time.
    return h.get_current("level_9") + 24.0 * (h.day - h.get_current("clocked_on"))


def _per_hour(smart_id: int, scale: float) -> Callable[[LandmarkRows], Floats]:
    return lambda h: h.get_current(f"level_{smart_id}") / (np.maximum(_measure_power_hours(h), 24.0) * scale)


def _counter_features(n: int) -> list[Feature]:
    what = NAMES[n]
    made = [Feature(f"smart_{n}", "count", f"{what}, last known", lambda h: h.get_current(f"level_{n}"))]
    made += [
        Feature(
            f"smart_{n}_up_{w}d",
            "count",
            f"sum of increases of {what} in {w} days",
            _build_rise_measure(n, w),
        )
        for w in WINDOWS
    ]
    made += [
        Feature(
            f"smart_{n}_rises_30d",
            "days",
            f"days on which {what} rose in 30 days",
            lambda h: h.compute_growth(f"rises_{n}", 30),
        ),
        Feature(
            f"smart_{n}_since_rise",
            "days",
            f"days since {what} last rose, 90 at most",
            lambda h: h.compute_days_since(f"rose_on_{n}"),
        ),
        Feature(
            f"smart_{n}_since_first",
            "days",
            f"days since {what} first left zero, 90 at most",
            lambda h: h.compute_days_since(f"first_on_{n}"),
        ),
        Feature(
            f"smart_{n}_net_30d",
            "count",
            f"change of {what} over 30 days, falls included",
            lambda h: h.compute_growth(f"level_{n}", 30),
        ),
    ]
    return made


def _build_rise_measure(n: int, window: int) -> Callable[[LandmarkRows], Floats]:
    return lambda h: h.compute_rise(n, window)


def _build_level_measure(n: int) -> Callable[[LandmarkRows], Floats]:
    return lambda h: h.get_current(f"level_{n}")


def _sum_columns(parts: list[Floats]) -> Floats:
    total = np.zeros_like(parts[0])
    for part in parts:
        total = total + part
    return total


def _how_many(test: Callable[[LandmarkRows, int], Floats]) -> Callable[[LandmarkRows], Floats]:
    return lambda h: _sum_columns([(test(h, n) > 0).astype(np.float64) for n in COUNTERS])


def _least_since(h: LandmarkRows) -> Floats:
    days = np.full_like(h.day, np.inf)
    for n in (5, 187, 197, 198):
        on = h.get_current(f"rose_on_{n}")
        days = np.minimum(days, np.where(on == NEVER, np.inf, h.day - on))
    return np.where(np.isinf(days), np.nan, np.minimum(days, LONG_AGO))


def _sectors_up(h: LandmarkRows) -> Floats:
    return _sum_columns([np.nan_to_num(h.compute_rise(n, 7)) for n in (5, 187, 197)])


def _longest_since_first(h: LandmarkRows) -> Floats:
    days = np.full_like(h.day, -1.0)
    for n in (5, 187, 197):
        on = h.get_current(f"first_on_{n}")
        days = np.maximum(days, np.where(on == NEVER, -1.0, h.day - on))
    return np.where(days < 0, np.nan, np.minimum(days, LONG_AGO))


def _build_schema() -> tuple[Feature, ...]:
    made: list[Feature] = []
    for n in COUNTERS:
        made += _counter_features(n)
    for n in (10, 12, 189, 196, 199):
        made.append(Feature(f"smart_{n}", "count", f"{NAMES[n]}, last known", _build_level_measure(n)))
        made.append(
            Feature(
                f"smart_{n}_up_30d",
                "count",
                f"sum of increases of {NAMES[n]} in 30 days",
                _build_rise_measure(n, 30),
            )
        )
    made += [*_symptom_features(), *_age_features(), *_workload_features()]
    for n, what in ((193, "loads"), (241, "written"), (242, "read")):
        made.append(
            Feature(
                f"{what}_sudden",
                "ratio",
                f"{what} a day, 3 days over 30 days, 10 at most",
                _build_change_measure(n, 3),
            )
        )
    return (*made, *_change_features())


def _symptom_features() -> list[Feature]:
    return [
        Feature(
            "symptoms",
            "count",
            "how many of SMART 5, 187, 188, 197, 198 are above zero",
            _how_many(lambda h, n: h.get_current(f"level_{n}")),
        ),
        Feature(
            "rising_7d",
            "count",
            "how many of the five rose in 7 days",
            _how_many(lambda h, n: h.compute_rise(n, 7)),
        ),
        Feature(
            "rising_30d",
            "count",
            "how many of the five rose in 30 days",
            _how_many(lambda h, n: h.compute_rise(n, 30)),
        ),
        Feature(
            "since_any_rise",
            "days",
            "days since SMART 5, 187, 197 or 198 last rose, 90 at most",
            _least_since,
        ),
        Feature(
            "pending_fallen",
            "count",
            "pending sectors below their highest so far",
            lambda h: np.maximum(h.get_current("most_197") - h.get_current("level_197"), 0.0),
        ),
    ]


def _age_features() -> list[Feature]:
    return [
        Feature("hours", "hours", "power-on hours on the landmark day", _measure_power_hours),
        Feature("celsius", "degrees Celsius", "temperature, last known", _build_level_measure(194)),
        Feature("celsius_7d", "degrees Celsius", "mean of the daily temperatures of 7 days", _mean_heat(7)),
        Feature(
            "celsius_30d", "degrees Celsius", "mean of the daily temperatures of 30 days", _mean_heat(30)
        ),
    ]


def _workload_features() -> list[Feature]:
    return [
        Feature("loads_30d", "1/day", "load cycles a day over 30 days", _per_day(193, 30, 1.0)),
        Feature(
            "loads_change",
            "ratio",
            "load cycles a day, 7 days over 30 days, 10 at most",
            _build_change_measure(193, 7),
        ),
        Feature("loads_life", "1/hour", "load cycles per power-on hour of its life", _per_hour(193, 1.0)),
        Feature("written_7d", "GiB/day", "data written a day over 7 days", _per_day(241, 7, SECTORS_PER_GIB)),
        Feature(
            "written_30d", "GiB/day", "data written a day over 30 days", _per_day(241, 30, SECTORS_PER_GIB)
        ),
        Feature(
            "written_change",
            "ratio",
            "writing rate, 7 days over 30 days, 10 at most",
            _build_change_measure(241, 7),
        ),
        Feature(
            "written_life",
            "GiB/hour",
            "data written per power-on hour of its life",
            _per_hour(241, SECTORS_PER_GIB),
        ),
        Feature("read_7d", "GiB/day", "data read a day over 7 days", _per_day(242, 7, SECTORS_PER_GIB)),
        Feature("read_30d", "GiB/day", "data read a day over 30 days", _per_day(242, 30, SECTORS_PER_GIB)),
        Feature(
            "read_change",
            "ratio",
            "reading rate, 7 days over 30 days, 10 at most",
            _build_change_measure(242, 7),
        ),
        Feature(
            "read_life",
            "GiB/hour",
            "data read per power-on hour of its life",
            _per_hour(242, SECTORS_PER_GIB),
        ),
    ]


def _change_features() -> list[Feature]:
    return [
        Feature(
            "celsius_change",
            "degrees Celsius",
            "mean temperature of 7 days less that of 30 days",
            lambda h: _mean_heat(7)(h) - _mean_heat(30)(h),
        ),
        Feature(
            "sectors_up_7d", "count", "increases of SMART 5, 187 and 197 in 7 days, added up", _sectors_up
        ),
        Feature(
            "since_any_first",
            "days",
            "days since the first of SMART 5, 187, 197 left zero, 90 at most",
            _longest_since_first,
        ),
    ]


SCHEMA: Final = _build_schema()
NAMES_IN_ORDER: Final = tuple(feature.name for feature in SCHEMA)
POSITION: Final[Mapping[str, int]] = {name: index for index, name in enumerate(NAMES_IN_ORDER)}


_TELLING: Final = [POSITION[f"smart_{n}"] for n in COUNTERS]


def has_reported_counters(x: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return for each drive whether it reports any of SMART 5, 187, 188, 197, 198: (drives,). x: (drives, features)."""
    return np.asarray(np.isfinite(x[:, _TELLING]).any(axis=1), dtype=bool)


def schema_hash(names: Iterable[str] = NAMES_IN_ORDER) -> str:
    """Return the SHA-256 over names, units and definitions of these features, in order.

    A bundle fits only the definitions that it was trained on. Raises KeyError for a name that no feature has.
    """
    features = [SCHEMA[POSITION[name]] for name in names]
    text = "\n".join(f"{f.name}\t{f.unit}\t{f.definition}" for f in features)
    return hashlib.sha256(text.encode()).hexdigest()
