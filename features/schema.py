"""The one feature schema: names, units, definitions, and a hash that a bundle must agree with.

A feature is a function of the ledger's row that holds on the landmark day and of the rows that held some days before.
None tells how many rows there are, how they are spaced, or when watching began: those betray the source and the
future. `measure` is the only place where a feature is computed, for batch and stream alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.ledger import COUNTERS, NEVER, Floats

WINDOWS: Final = (1, 3, 7, 15, 30)
"""Days that deltas look back."""
LONG_AGO: Final = 90.0
"""Days after which a rise is "long ago"; longer ones are set to this, since histories differ in length."""
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
    """Rows of the ledger that hold on the landmark day, and those that held `w` days before it."""

    def __init__(
        self,
        rows: Mapping[str, Floats],
        at: NDArray[np.int64],
        back: Mapping[int, NDArray[np.int64]],
        day: Floats,
        span: Mapping[int, Floats],
    ) -> None:
        """at, back[w]: (pairs,) row numbers. day: (pairs,) landmark. span[w]: (pairs,) days really looked back."""
        self._rows, self._at, self._back, self.day, self.span = rows, at, back, day, span
        self._now: dict[str, Floats] = {}

    def now(self, column: str) -> Floats:
        """The column on the landmark day."""
        if column not in self._now:
            self._now[column] = self._rows[column][self._at]
        return self._now[column]

    def then(self, column: str, window: int) -> Floats:
        """The column `window` days before the landmark, or on the first day seen if that is later."""
        return self._rows[column][self._back[window]]

    def grown(self, column: str, window: int) -> Floats:
        """How much a running total grew over the window."""
        return self.now(column) - self.then(column, window)

    def risen(self, smart_id: int, window: int) -> Floats:
        """Sum of increases over the window; NaN while the counter is not reported."""
        return np.where(
            np.isnan(self.now(f"level_{smart_id}")), np.nan, self.grown(f"risen_{smart_id}", window)
        )

    def since(self, column: str) -> Floats:
        """Days since the day in the column, at most LONG_AGO; NaN when it has not happened."""
        on = self.now(column)
        return np.where(on == NEVER, np.nan, np.minimum(self.day - on, LONG_AGO))


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the feature matrix."""

    name: str
    unit: str
    definition: str
    measure: Callable[[LandmarkRows], Floats]


def _per_day(smart_id: int, window: int, scale: float) -> Callable[[LandmarkRows], Floats]:
    return lambda h: h.risen(smart_id, window) / (h.span[window] * scale)


def _change(smart_id: int, window: int) -> Callable[[LandmarkRows], Floats]:
    def change(h: LandmarkRows) -> Floats:
        week, month = h.risen(smart_id, window) / h.span[window], h.risen(smart_id, 30) / h.span[30]
        return np.where(month > 0, np.minimum(week / np.where(month > 0, month, 1.0), 10.0), np.nan)

    return change


def _mean_heat(window: int) -> Callable[[LandmarkRows], Floats]:
    def mean(h: LandmarkRows) -> Floats:
        heat, days = h.grown("heat", window), h.grown("warm_days", window)
        return np.where(days > 0, heat / np.where(days > 0, days, 1.0), h.now("level_194"))

    return mean


def _hours(h: LandmarkRows) -> Floats:
    # Counted on from the day of the last new value: a row that merely repeats an older one says no new time.
    return h.now("level_9") + 24.0 * (h.day - h.now("clocked_on"))


def _per_hour(smart_id: int, scale: float) -> Callable[[LandmarkRows], Floats]:
    return lambda h: h.now(f"level_{smart_id}") / (np.maximum(_hours(h), 24.0) * scale)


def _counter_features(n: int) -> list[Feature]:
    what = NAMES[n]
    made = [Feature(f"smart_{n}", "count", f"{what}, last known", lambda h: h.now(f"level_{n}"))]
    made += [
        Feature(f"smart_{n}_up_{w}d", "count", f"sum of increases of {what} in {w} days", _risen(n, w))
        for w in WINDOWS
    ]
    made += [
        Feature(
            f"smart_{n}_rises_30d",
            "days",
            f"days on which {what} rose in 30 days",
            lambda h: h.grown(f"rises_{n}", 30),
        ),
        Feature(
            f"smart_{n}_since_rise",
            "days",
            f"days since {what} last rose, 90 at most",
            lambda h: h.since(f"rose_on_{n}"),
        ),
        Feature(
            f"smart_{n}_since_first",
            "days",
            f"days since {what} first left zero, 90 at most",
            lambda h: h.since(f"first_on_{n}"),
        ),
        Feature(
            f"smart_{n}_net_30d",
            "count",
            f"change of {what} over 30 days, falls included",
            lambda h: h.grown(f"level_{n}", 30),
        ),
    ]
    return made


def _risen(n: int, window: int) -> Callable[[LandmarkRows], Floats]:
    return lambda h: h.risen(n, window)


def _level(n: int) -> Callable[[LandmarkRows], Floats]:
    return lambda h: h.now(f"level_{n}")


def _sum(parts: list[Floats]) -> Floats:
    total = np.zeros_like(parts[0])
    for part in parts:
        total = total + part
    return total


def _how_many(test: Callable[[LandmarkRows, int], Floats]) -> Callable[[LandmarkRows], Floats]:
    return lambda h: _sum([(test(h, n) > 0).astype(np.float64) for n in COUNTERS])


def _least_since(h: LandmarkRows) -> Floats:
    days = np.full_like(h.day, np.inf)
    for n in (5, 187, 197, 198):
        on = h.now(f"rose_on_{n}")
        days = np.minimum(days, np.where(on == NEVER, np.inf, h.day - on))
    return np.where(np.isinf(days), np.nan, np.minimum(days, LONG_AGO))


def _sectors_up(h: LandmarkRows) -> Floats:
    return _sum([np.nan_to_num(h.risen(n, 7)) for n in (5, 187, 197)])


def _longest_since_first(h: LandmarkRows) -> Floats:
    days = np.full_like(h.day, -1.0)
    for n in (5, 187, 197):
        on = h.now(f"first_on_{n}")
        days = np.maximum(days, np.where(on == NEVER, -1.0, h.day - on))
    return np.where(days < 0, np.nan, np.minimum(days, LONG_AGO))


def _schema() -> tuple[Feature, ...]:
    made: list[Feature] = []
    for n in COUNTERS:
        made += _counter_features(n)
    for n in (10, 12, 189, 196, 199):
        made.append(Feature(f"smart_{n}", "count", f"{NAMES[n]}, last known", _level(n)))
        made.append(
            Feature(f"smart_{n}_up_30d", "count", f"sum of increases of {NAMES[n]} in 30 days", _risen(n, 30))
        )
    made += [*_symptom_features(), *_age_features(), *_workload_features()]
    for n, what in ((193, "loads"), (241, "written"), (242, "read")):
        made.append(
            Feature(
                f"{what}_sudden", "ratio", f"{what} a day, 3 days over 30 days, 10 at most", _change(n, 3)
            )
        )
    return (*made, *_change_features())


def _symptom_features() -> list[Feature]:
    return [
        Feature(
            "symptoms",
            "count",
            "how many of SMART 5, 187, 188, 197, 198 are above zero",
            _how_many(lambda h, n: h.now(f"level_{n}")),
        ),
        Feature(
            "rising_7d", "count", "how many of the five rose in 7 days", _how_many(lambda h, n: h.risen(n, 7))
        ),
        Feature(
            "rising_30d",
            "count",
            "how many of the five rose in 30 days",
            _how_many(lambda h, n: h.risen(n, 30)),
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
            lambda h: np.maximum(h.now("most_197") - h.now("level_197"), 0.0),
        ),
    ]


def _age_features() -> list[Feature]:
    return [
        Feature("hours", "hours", "power-on hours on the landmark day", _hours),
        Feature("celsius", "degrees Celsius", "temperature, last known", _level(194)),
        Feature("celsius_7d", "degrees Celsius", "mean of the daily temperatures of 7 days", _mean_heat(7)),
        Feature(
            "celsius_30d", "degrees Celsius", "mean of the daily temperatures of 30 days", _mean_heat(30)
        ),
    ]


def _workload_features() -> list[Feature]:
    return [
        Feature("loads_30d", "1/day", "load cycles a day over 30 days", _per_day(193, 30, 1.0)),
        Feature(
            "loads_change", "ratio", "load cycles a day, 7 days over 30 days, 10 at most", _change(193, 7)
        ),
        Feature("loads_life", "1/hour", "load cycles per power-on hour of its life", _per_hour(193, 1.0)),
        Feature("written_7d", "GiB/day", "data written a day over 7 days", _per_day(241, 7, SECTORS_PER_GIB)),
        Feature(
            "written_30d", "GiB/day", "data written a day over 30 days", _per_day(241, 30, SECTORS_PER_GIB)
        ),
        Feature("written_change", "ratio", "writing rate, 7 days over 30 days, 10 at most", _change(241, 7)),
        Feature(
            "written_life",
            "GiB/hour",
            "data written per power-on hour of its life",
            _per_hour(241, SECTORS_PER_GIB),
        ),
        Feature("read_7d", "GiB/day", "data read a day over 7 days", _per_day(242, 7, SECTORS_PER_GIB)),
        Feature("read_30d", "GiB/day", "data read a day over 30 days", _per_day(242, 30, SECTORS_PER_GIB)),
        Feature("read_change", "ratio", "reading rate, 7 days over 30 days, 10 at most", _change(242, 7)),
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


SCHEMA: Final = _schema()
NAMES_IN_ORDER: Final = tuple(feature.name for feature in SCHEMA)
POSITION: Final[Mapping[str, int]] = {name: index for index, name in enumerate(NAMES_IN_ORDER)}


_TELLING: Final = [POSITION[f"smart_{n}"] for n in COUNTERS]


def reported(x: NDArray[np.float32]) -> NDArray[np.bool_]:
    """(drives,) whether a drive reports any of SMART 5, 187, 188, 197, 198. x: (drives, features)."""
    return np.asarray(np.isfinite(x[:, _TELLING]).any(axis=1), dtype=bool)


def schema_hash(names: Iterable[str] = NAMES_IN_ORDER) -> str:
    """SHA-256 over names, units and definitions of these features, in order.

    A bundle fits only the definitions that it was trained on. Raises KeyError for a name that no feature has.
    """
    features = [SCHEMA[POSITION[name]] for name in names]
    text = "\n".join(f"{f.name}\t{f.unit}\t{f.definition}" for f in features)
    return hashlib.sha256(text.encode()).hexdigest()
