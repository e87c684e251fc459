"""Explanations: the most important facts of each drive, the advice, and the condition under which a flag clears.

The facts of a flagged drive are ordered by how much their features added to the forecast (LightGBM's
contributions), those of other drives as in `FACTS`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.outlook import Advice, Reason, Status
from predrain.features.feature_schema import NAMES, POSITION
from predrain.models.forecast.drive_family import compute_age_years
from predrain.models.forecast.explanations.clearing_condition import explain_clearing
from predrain.models.forecast.explanations.death_rate_text import CODE as BASE_RATE
from predrain.models.forecast.explanations.death_rate_text import tell_base_rate
from predrain.models.forecast.explanations.facts import (
    FACTS,
    SAS_WORDS,
    Fact,
    Matrix,
    Row,
    find_holding_facts,
    format_probability,
)
from predrain.models.forecast.recent_mortality import find_mortality_ratio

if TYPE_CHECKING:
    from predrain.models.forecast.bundle import Bundle, Forecast

MOST: Final = 3
"""Largest number of facts that an explanation has."""
CODES: Final = (
    *(fact.code for fact in FACTS),
    "model-lately",
    "no-symptom",
    BASE_RATE,
    "not-reported",
    *dict.fromkeys(fact.for_sas().code for fact in FACTS if fact.for_sas() != fact),
    "as-sata",
)
"""Every code that a model's outlook can carry. Rules add their own (models.forecast.rules.CODES)."""
OFTEN: Final = 1.25
"""Ratio of a model's latest deaths to those forecast from which on it is a reason for its flagged drives."""
_NO_SYMPTOM: Final = "No symptom."
_NO_OTHER: Final = "Its counters show no symptom."
_AS_SATA: Final = Reason(
    "as-sata", "No SAS disk was learned from: its error counts are weighed as those of SATA hard disks."
)
_AT: Final = {fact.code: column for column, fact in enumerate(FACTS)}
_SECTORS: Final = ("pending", "uncorrectable", "reallocated", "offline-uncorrectable")
_RISEN: Final = frozenset(_AT[f"{what}-rose"] for what in _SECTORS)
_MEDIA: Final = _RISEN | {_AT[f"{what}-old"] for what in _SECTORS}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one drive."""

    status: Status
    """The status of the forecast, but never worse than a warning if only the cable is to blame."""
    reasons: tuple[Reason, ...]
    """The reasons, most important first."""
    advice: Advice
    clears: str
    """One sentence; empty if there is nothing to clear."""

    def __str__(self) -> str:
        words = [reason.sentence for reason in self.reasons]
        if self.advice is not Advice.NOTHING:
            words.append(self.advice.sentence)
        return " ".join([*words, self.clears]).strip()


def explain_forecasts(
    bundle: Bundle,
    forecast: Forecast,
    x: Matrix,
    model: NDArray[np.object_],
    day: NDArray[np.int64],
    watched: NDArray[np.int64],
    sas: NDArray[np.bool_] | None = None,
) -> list[Explanation]:
    """Return one explanation for each drive. x: (drives, features), each measured on its `day`.

    watched: (drives,) days since the drive's first reading, that day included; no sentence is about the time
    before. sas: (drives,) True for SAS drives, whose counters have other names; None if there are none.
    """
    is_sas = [False] * len(x) if sas is None else sas.tolist()
    holds = find_holding_facts(x)
    held_by = holds.sum(axis=1)
    silent = held_by == 0
    flagged = np.flatnonzero((forecast.status == Status.WARNING) | (forecast.status == Status.BAD))
    pushes: dict[int, list[float]] = {}
    clears = [""] * len(x)
    several = flagged[held_by[flagged] > 1]  # a single fact is reported even if it added nothing
    if len(several):
        pushed = bundle.contributions(x[several], model[several])
        by_fact = np.column_stack([pushed[:, list(fact.columns)].sum(axis=1) for fact in FACTS])
        pushes = dict(zip(several.tolist(), by_fact.tolist(), strict=True))
    if len(flagged):
        said = explain_clearing(bundle, x[flagged], model[flagged], ~silent[flagged])
        for place, sentence in zip(flagged, said, strict=True):
            clears[place] = sentence
    found: list[Explanation] = []
    rates = _tell_base_rates(bundle, x, model, silent)
    p_30d = forecast.p_fail[:, 2].tolist()
    for row, word in enumerate(forecast.status.tolist()):
        if word == Status.UNKNOWN:
            found.append(_NOT_JUDGED)
        elif silent[row]:
            quiet = _explain_silent_drive(Status(word), format_probability(p_30d[row]), clears[row])
            reasons = (*quiet.reasons, rates[row])
            found.append(Explanation(quiet.status, reasons, quiet.advice, quiet.clears))
        else:
            held = [column for column, does in enumerate(holds[row].tolist()) if does]
            facts = _select_telling_facts(held, pushes.get(row))
            reasons = _describe_facts(
                facts, x[row].tolist(), int(day[row]), int(watched[row]), bundle.facts.shares, sas=is_sas[row]
            )
            found.append(_build_explanation(Status(word), held, reasons, clears[row]))
    for row in flagged.tolist():
        often = find_mortality_ratio(bundle.facts.lately, str(model[row]))
        if often >= OFTEN:
            why = _describe_recent_mortality(f"{often:.1f}", bundle.facts.window[1])
            found[row] = replace(found[row], reasons=(*found[row].reasons, why))
    for row, as_sata in enumerate(is_sas):
        if as_sata:
            found[row] = replace(found[row], reasons=(*found[row].reasons, _AS_SATA))
    return found


def _tell_base_rates(
    bundle: Bundle, x: Matrix, model: NDArray[np.object_], which: NDArray[np.bool_]
) -> dict[int, Reason]:
    """Return for each of these rows how often drives of its model fail at its age, computed once for each model and
    age."""
    rows = np.flatnonzero(which)
    hours = x[rows, POSITION["hours"]]
    told: dict[tuple[str, int], Reason] = {}
    found: dict[int, Reason] = {}
    for row, name, age, lived in zip(
        rows.tolist(), model[rows].tolist(), compute_age_years(hours).tolist(), hours, strict=True
    ):
        key = str(name), age
        if key not in told:
            told[key] = tell_base_rate(bundle, str(name), np.array([lived], dtype=np.float32))
        found[row] = told[key]
    return found


@cache
def _describe_recent_mortality(often: str, end: str) -> Reason:
    sentence = f"Disks of its model died {often} times as often as forecast in the months before {end}."
    return Reason("model-lately", sentence)


def _build_explanation(
    status: Status, held: Sequence[int], reasons: tuple[Reason, ...], clears: str
) -> Explanation:
    advice = choose_advice(status, held)
    if advice is not Advice.CHECK_CABLE:
        return Explanation(status, reasons, advice, clears)
    status = Status.WARNING if status is Status.BAD else status
    return Explanation(status, reasons, advice, "Clears when CRC errors stand still for 30 days.")


def choose_advice(status: Status, held: Collection[int]) -> Advice:
    """Choose the advice. held: the places in FACTS of the facts that hold of the drive."""
    media = not _MEDIA.isdisjoint(held)
    if _AT["crc-rose"] in held and not media:
        return Advice.CHECK_CABLE
    if status is Status.BAD:
        return Advice.DRAIN_NOW
    if status is not Status.WARNING:
        return Advice.NOTHING
    if not _RISEN.isdisjoint(held):
        return Advice.REPLACE_SOON
    if media:
        return Advice.SELF_TEST
    return Advice.COOL if _AT["hot"] in held else Advice.WATCH


def _select_telling_facts(held: Sequence[int], pushes: Sequence[float] | None) -> list[Fact]:
    if pushes is not None:
        for_it = [column for column in held if pushes[column] > 0]
        held = sorted(for_it, key=lambda column: -pushes[column]) if for_it else held
    return [FACTS[column] for column in held[:MOST]]


def _describe_facts(
    facts: list[Fact], row: Row, day: int, watched: int, shares: Mapping[str, float], *, sas: bool
) -> tuple[Reason, ...]:
    words = SAS_WORDS if sas else NAMES
    told = [fact.for_sas() for fact in facts] if sas else facts
    reasons = [Reason(fact.code, fact.sentence(row, day, watched, words), fact.counter) for fact in told]
    first, code = reasons[0], facts[0].code
    if code.endswith("-rose") and code in shares:
        # The share that died is said only once, with the most important fact.
        disks = "SATA disks" if sas else "disks"
        did = f" {format_probability(shares[code])} of {disks} with such a rise die within 30 days."
        reasons[0] = Reason(first.code, first.sentence + did, first.counter)
    return tuple(reasons)


def describe_beside_symptoms(why: Explanation) -> tuple[Reason, ...]:
    """Return the reasons of a drive whose counters show no symptom, when there is other evidence against it."""
    return tuple(
        replace(reason, sentence=_NO_OTHER + reason.sentence.removeprefix(_NO_SYMPTOM))
        if reason.code == "no-symptom"
        else reason
        for reason in why.reasons
    )


@cache
def _explain_silent_drive(status: Status, chance: str, clears: str) -> Explanation:
    sentence = (
        f"{_NO_SYMPTOM} {chance.capitalize()} within 30 days from model and age alone; "
        "about 4 in 10 failures give no sign."
    )
    advice = choose_advice(status, ())
    return Explanation(status, (Reason("no-symptom", sentence),), advice, clears)


_NOT_JUDGED: Final = Explanation(
    Status.UNKNOWN,
    (Reason("not-reported", "The drive reports none of the counters that the forecast reads."),),
    Advice.WATCH,
    "",
)
