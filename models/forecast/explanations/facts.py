"""Facts: statements about a drive in an operator's words, with the numbers and dates behind them.

A fact holds by a condition on the feature vector, so history and live stream give the same facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.error_counts import ATA_COUNTERS
from predrain.data.history import EPOCH
from predrain.features.feature_schema import LONG_AGO, NAMES, NAMES_IN_ORDER, POSITION, WINDOWS

Row = Sequence[float]
Words = Mapping[int, str]
"""SMART id -> name of the counter."""
Matrix = NDArray[np.float32]

SLUG: Final[Mapping[int, str]] = {
    5: "reallocated",
    187: "uncorrectable",
    188: "timeouts",
    197: "pending",
    198: "offline-uncorrectable",
    199: "crc",
}
SAS_WORDS: Final[Words] = {
    **NAMES, 5: "grown defects", 187: "uncorrected errors", 197: "pending defects",
}  # fmt: skip
SAS_TERMS: Final[Mapping[str, tuple[str, str]]] = {
    "reallocated": ("grown-defects", "grown_defects"),
    "reported_uncorrectable": ("uncorrected-errors", "uncorrected_errors"),
}
"""Counter of a SATA drive -> the code and the counter of a SAS drive (data.error_counts.SAS_COUNTERS)."""
HOT: Final = 45.0
"""Weekly mean temperature in degrees Celsius above which it is reported."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement that may hold of a drive."""

    code: str
    counter: str | None
    columns: tuple[int, ...]
    """Features whose contributions count for this fact."""
    holds: Callable[[Matrix], NDArray[np.bool_]]
    sentence: Callable[[Row, int, int, Words], str]
    """A function that makes the sentence.

    The function takes one drive's features measured on a day, that day (since 1970-01-01), the days since the
    drive's first reading, and the names of counters.
    """

    def for_sas(self) -> Fact:
        """Return the same fact under the name that SAS drives have for the counter."""
        slug, counter = SAS_TERMS.get(self.counter or "", ("", self.counter))
        return replace(
            self, code=f"{slug}-{self.code.rpartition('-')[2]}" if slug else self.code, counter=counter
        )


def format_probability(p: float) -> str:
    """Format a probability for people: whole percent, one decimal below 1 %, "under 0.1 %", "over 95 %"."""
    if p < 0.001:
        return "under 0.1 %"
    if p > 0.95:
        return "over 95 %"
    return f"{p:.1%}".replace("%", " %") if p < 0.01 else f"{p:.0%}".replace("%", " %")


def _read_count(row: Row, name: str) -> int:
    value = row[POSITION[name]]
    return 0 if value != value else round(value)


def _format_date(day: int, ago: int) -> str:
    return f"{EPOCH + timedelta(days=day - min(ago, round(LONG_AGO))):%d %b}"


def _make_rise_sentence(n: int) -> Callable[[Row, int, int, Words], str]:
    def sentence(row: Row, day: int, _watched: int, words: Words) -> str:
        what, level = words[n], _read_count(row, f"smart_{n}")
        gained, net = _read_count(row, f"smart_{n}_up_30d"), _read_count(row, f"smart_{n}_net_30d")
        rises, last = (
            _read_count(row, f"smart_{n}_rises_30d"),
            _format_date(day, _read_count(row, f"smart_{n}_since_rise")),
        )
        change = f"{level - gained:,} to {level:,}" if gained == net else f"by {gained:,}, {level:,} now"
        if row[POSITION[f"smart_{n}_since_first"]] <= 30:
            first = _format_date(day, _read_count(row, f"smart_{n}_since_first"))
            return (
                f"First {what} on {first}, {level:,} by now."
                if rises <= 1
                else (f"First {what} on {first}; they rose on {rises} days, {change}, last on {last}.")
            )
        if rises <= 1:
            return f"{what.capitalize()} rose on {last}, {change}."
        # The shortest window that holds all of the month's rises is the most precise.
        window = next((w for w in WINDOWS if _read_count(row, f"smart_{n}_up_{w}d") == gained), WINDOWS[-1])
        return f"{what.capitalize()} rose on {rises} of the last {window} days, {change}, last on {last}."

    return sentence


def _tell_heat(row: Row, _day: int, _watched: int, _words: Words) -> str:
    celsius = row[POSITION["celsius_7d"]]
    return f"{celsius:.0f} degrees Celsius on average over 7 days (reported above {HOT:.0f})."


def _crc_rose(row: Row, _day: int, _watched: int, _words: Words) -> str:
    return (
        f"CRC errors rose by {_read_count(row, 'smart_199_up_30d'):,} in 30 days, to "
        f"{_read_count(row, 'smart_199'):,}."
    )


def _make_still_sentence(n: int) -> Callable[[Row, int, int, Words], str]:
    def sentence(row: Row, day: int, watched: int, words: Words) -> str:
        what = f"{words[n][0].upper()}{words[n][1:]}: {_read_count(row, f'smart_{n}'):,}"
        if watched <= 1:
            return f"{what}, seen for the first time."
        if watched <= WINDOWS[-1]:
            return f"{what}, none new in the {watched} days since the first reading."
        told = f"{what}, no more for {WINDOWS[-1]} days"
        name = f"smart_{n}_since_rise"
        since = row[POSITION[name]] if name in POSITION else np.nan
        return f"{told}, the last on {_format_date(day, round(since))}." if since < 90 else f"{told}."

    return sentence


def _counter_facts(n: int) -> list[Fact]:
    mine = tuple(
        i for i, name in enumerate(NAMES_IN_ORDER) if name == f"smart_{n}" or name.startswith(f"smart_{n}_")
    )
    level, up = POSITION[f"smart_{n}"], POSITION[f"smart_{n}_up_30d"]
    return [
        Fact(
            f"{SLUG[n]}-rose",
            ATA_COUNTERS[n],
            mine,
            lambda x: x[:, up] > 0,
            _crc_rose if n == 199 else _make_rise_sentence(n),
        ),
        Fact(
            f"{SLUG[n]}-old",
            ATA_COUNTERS[n],
            mine,
            lambda x: (x[:, level] > 0) & ~(x[:, up] > 0),
            _make_still_sentence(n),
        ),
    ]


def _build_facts() -> tuple[Fact, ...]:
    made = [fact for n in (197, 187, 5, 198, 188, 199) for fact in _counter_facts(n)]
    fallen, heat = POSITION["pending_fallen"], POSITION["celsius_7d"]
    made += [
        Fact(
            "pending-fell",
            "pending",
            (fallen,),
            lambda x: x[:, fallen] > 0,
            lambda row, _day, _watched, words: (
                f"{words[197].capitalize()} were {_read_count(row, 'pending_fallen'):,} higher before: "
                "some were rewritten."
            ),
        ),
        Fact(
            "hot",
            "temperature_c",
            tuple(POSITION[name] for name in ("celsius", "celsius_7d", "celsius_30d")),
            lambda x: x[:, heat] > HOT,
            _tell_heat,
        ),
    ]
    return tuple(made)


FACTS: Final = _build_facts()


def find_holding_facts(x: Matrix) -> NDArray[np.bool_]:
    """Return which facts hold of which drive: (drives, FACTS). x: (drives, features)."""
    found = np.zeros((len(x), len(FACTS)), dtype=bool)
    for column, fact in enumerate(FACTS):
        found[:, column] = fact.holds(x)
    # Most drives count one sector both as pending and as offline uncorrectable, so only one of the two is
    # reported.
    same = x[:, POSITION["smart_198"]] == x[:, POSITION["smart_197"]]
    twins = np.array([fact.code.startswith("offline") for fact in FACTS])
    found[np.ix_(same, twins)] = False
    return found


def compute_failure_shares(
    x: Matrix, dies: NDArray[np.bool_], weight: NDArray[np.float64]
) -> dict[str, float]:
    """Return for each fact the share of its drives that die within 30 days. Facts with fewer than 100 landmarks are
    left out."""
    found: dict[str, float] = {}
    for fact in FACTS:
        holds = fact.holds(x)
        if np.count_nonzero(holds) >= 100:
            found[fact.code] = float((weight * dies)[holds].sum() / weight[holds].sum())
    return found
