"""Why: facts in an operator's words, with their numbers and windows, the most telling first; and what to do.

Facts are found by conditions on the feature vector, so history and stream tell the same. Of a flagged drive they are
ordered by what their features added to the forecast (LightGBM's contributions), of others in the order below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from data.outlook import Reason, Status
from features.schema import NAMES, NAMES_IN_ORDER, POSITION

Row = NDArray[np.float32]
Matrix = NDArray[np.float32]

COUNTER_FIELD: Final[Mapping[int, str]] = {
    5: "reallocated",
    187: "reported_uncorrectable",
    188: "command_timeouts",
    197: "pending",
    198: "offline_uncorrectable",
    199: "crc_errors",
}
SLUG: Final[Mapping[int, str]] = {
    5: "reallocated",
    187: "uncorrectable",
    188: "timeouts",
    197: "pending",
    198: "offline-uncorrectable",
    199: "crc",
}
HOT: Final = 45.0
"""Degrees Celsius above which a week's mean is worth saying."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that can be said of a drive."""

    code: str
    counter: str | None
    columns: tuple[int, ...]
    """Features whose contributions speak for it."""
    holds: Callable[[Matrix], NDArray[np.bool_]]
    sentence: Callable[[Row], str]


def percent(p: float) -> str:
    """A chance for people: whole percent, one decimal below 1, "under 0.1 %", "over 95 %"."""
    if p < 0.001:
        return "under 0.1 %"
    if p > 0.95:
        return "over 95 %"
    return f"{p:.1%}".replace("%", " %") if p < 0.01 else f"{p:.0%}".replace("%", " %")


def _count(row: Row, name: str) -> int:
    value = float(row[POSITION[name]])
    return 0 if np.isnan(value) else round(value)


def _days(count: int) -> str:
    return "today" if count == 0 else "yesterday" if count == 1 else f"{count} days ago"


def _rose(n: int) -> Callable[[Row], str]:
    def sentence(row: Row) -> str:
        level, name = _count(row, f"smart_{n}"), NAMES[n].capitalize()
        if n == 199:
            return f"{name} rose by {_count(row, 'smart_199_up_30d'):,} in 30 days, to {level:,}."
        first = row[POSITION[f"smart_{n}_since_first"]]
        if first <= 30:
            return f"First {NAMES[n]} {_days(round(float(first)))}, {level:,} by now."
        rises, start = _count(row, f"smart_{n}_rises_30d"), level - _count(row, f"smart_{n}_net_30d")
        last = _days(_count(row, f"smart_{n}_since_rise"))
        return f"{name} rose on {rises} of the last 30 days, {start:,} to {level:,}, last {last}."

    return sentence


def _still(n: int) -> Callable[[Row], str]:
    return lambda row: f"{NAMES[n].capitalize()}: {_count(row, f'smart_{n}'):,}, no more for 30 days."


def _counter_facts(n: int) -> list[Fact]:
    mine = tuple(
        i for i, name in enumerate(NAMES_IN_ORDER) if name == f"smart_{n}" or name.startswith(f"smart_{n}_")
    )
    level, up = POSITION[f"smart_{n}"], POSITION[f"smart_{n}_up_30d"]
    return [
        Fact(f"{SLUG[n]}-rose", COUNTER_FIELD[n], mine, lambda x: x[:, up] > 0, _rose(n)),
        Fact(
            f"{SLUG[n]}-old",
            COUNTER_FIELD[n],
            mine,
            lambda x: (x[:, level] > 0) & ~(x[:, up] > 0),
            _still(n),
        ),
    ]


def _facts() -> tuple[Fact, ...]:
    made = [fact for n in (197, 187, 5, 198, 188, 199) for fact in _counter_facts(n)]
    fallen, heat = POSITION["pending_fallen"], POSITION["celsius_7d"]
    made += [
        Fact(
            "pending-fell",
            "pending",
            (fallen,),
            lambda x: x[:, fallen] > 0,
            lambda row: (
                f"Pending sectors were {_count(row, 'pending_fallen'):,} higher before: some were rewritten."
            ),
        ),
        Fact(
            "hot",
            "temperature_c",
            tuple(POSITION[name] for name in ("celsius", "celsius_7d", "celsius_30d")),
            lambda x: x[:, heat] > HOT,
            lambda row: (
                f"{float(row[heat]):.0f} degrees Celsius on average over 7 days (told above {HOT:.0f})."
            ),
        ),
    ]
    return tuple(made)


FACTS: Final = _facts()
CODES: Final = (
    *(fact.code for fact in FACTS),
    "no-symptom",
    "too-young",
    "family-unknown",
    "not-reported",
)
"""Every code that a model's outlook can carry; rules add their own (models.rules.CODES)."""


def shares(x: Matrix, dies: NDArray[np.bool_], weight: NDArray[np.float64]) -> dict[str, float]:
    """Of drives to which a fact applies, the share that dies within 30 days; only facts with 100 such landmarks."""
    found: dict[str, float] = {}
    for fact in FACTS:
        holds = fact.holds(x)
        if np.count_nonzero(holds) >= 100:
            found[fact.code] = float((weight * dies)[holds].sum() / weight[holds].sum())
    return found


def reasons_of(
    x: Matrix,
    p_30d: NDArray[np.float64],
    shares: Mapping[str, float],
    contributions: NDArray[np.float64] | None,
    most: int = 3,
) -> list[tuple[Reason, ...]]:
    """Reasons of each drive. contributions: (drives, features or more) or None, then in the order of FACTS."""
    holds = (
        np.column_stack([fact.holds(x) for fact in FACTS])
        if len(x)
        else np.zeros((0, len(FACTS)), dtype=bool)
    )
    same = (x[:, POSITION["smart_198"]] == x[:, POSITION["smart_197"]])[:, None]
    twins = np.array([fact.code.startswith("offline") for fact in FACTS])[None, :]
    holds &= ~(same & twins)
    found: list[tuple[Reason, ...]] = []
    for row in range(len(x)):
        mine = [FACTS[i] for i in np.flatnonzero(holds[row])]
        if contributions is not None:
            pushes = {fact.code: float(contributions[row, list(fact.columns)].sum()) for fact in mine}
            mine = [
                fact for fact in sorted(mine, key=lambda f: -pushes[f.code]) if pushes[fact.code] > 0
            ] or mine
        if mine:
            # What such disks did is said once, of the most telling fact.
            said = [_reason(mine[0], x[row], shares), *(_reason(fact, x[row], {}) for fact in mine[1:most])]
            found.append(tuple(said))
        else:
            found.append(_silent(percent(float(p_30d[row]))))
    return found


def _reason(fact: Fact, row: Row, shares: Mapping[str, float]) -> Reason:
    sentence = fact.sentence(row)
    if fact.code.endswith("-rose") and fact.code in shares:
        sentence += f" {percent(shares[fact.code])} of disks with such a rise die within 30 days."
    return Reason(fact.code, sentence, fact.counter)


@cache
def _silent(chance: str) -> tuple[Reason, ...]:
    sentence = (
        f"No symptom. {chance.capitalize()} within 30 days from model, age and work alone; "
        "about 4 in 10 failures give no sign."
    )
    return (Reason("no-symptom", sentence),)


TOO_YOUNG: Final = Reason(
    "too-young", "Less than 3 days of readings: judged by its model and age only, so far."
)
NOT_REPORTED: Final = Reason(
    "not-reported", "The drive reports none of the counters that the forecast reads."
)


def family_unknown(model: str) -> Reason:
    """What is said of a drive whose maker was never seen."""
    name = model or "without a model name"
    return Reason(
        "family-unknown", f"No drive like {name} was learned from: shown is what all drives do on average."
    )


def not_judged(young: bool, reported: bool, model: str) -> Reason:
    """Why a drive's status is unknown."""
    if not reported:
        return NOT_REPORTED
    return TOO_YOUNG if young else family_unknown(model)


SECTORS: Final = frozenset(
    {"pending-rose", "uncorrectable-rose", "reallocated-rose", "offline-uncorrectable-rose"}
)


def prescription(status: Status, reasons: Sequence[Reason]) -> str:
    """What to do about it, and what would clear it."""
    codes = {reason.code for reason in reasons}
    if "crc-rose" in codes and not codes & SECTORS:
        return "Check cable or backplane, not the disk. Clears when CRC errors stand still."
    if status is Status.BAD:
        return "Drain it now and replace the disk."
    if status is Status.WARNING:
        if codes & SECTORS:
            return "Plan to replace it soon, and run a long self-test. Clears when nothing rises for 30 days."
        return "Watch it, and run a long self-test. Clears when its forecast falls."
    if status is Status.UNKNOWN:
        return "Nothing to do for the forecast; it sharpens as readings come in."
    return "Nothing to do."
