"""The drives that are left out of the training and judged instead: those of a maker, of a model, or of an era.

A maker or a model with LEAST deaths in the judged days is a set of its own. The others are pooled, and all models
of a pool are left out together. Makers form one pool. Models form a pool for each maker, and models of pools still
below LEAST form one more. An era is the set of models whose first reading comes after the split, so that no
forecaster can have learned from them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final

import numpy as np

from predrain.data.refusal import Refusal
from predrain.models.evaluate import FailureTruth
from predrain.models.evaluate.arrays import Bools, Ints
from predrain.models.evaluate.cohort import gather_cohort, group_failures
from predrain.models.forecast.drive_family import MAKERS, maker_of

LEAST: Final = 20
"""Number of deaths in the judged days from which on a maker or a model is a set of its own."""


class LeaveOutKind(StrEnum):
    """The property that the drives of a left-out set share."""

    MAKER = "maker"
    MODEL = "model"
    ERA = "era"


class UnknownLeaveOut(Refusal):
    """The requested set is no maker, model or era."""


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """A request: all sets of a kind, or one of them by its name."""

    kind: LeaveOutKind
    name: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOutSet:
    """Models whose drives are judged by a forecaster that has not learned from any of them."""

    kind: LeaveOutKind
    name: str
    models: frozenset[str]

    def find_member_drives(self, truth: FailureTruth) -> Bools:
        """Find the drives that belong to the set, by the model that each reported last: (drives,) booleans."""
        return np.isin(truth.models.astype(str), sorted(self.models))


def parse_leave_out(text: str) -> LeaveOut:
    """Parse `maker`, `model`, `era`, `maker=Seagate` or `model=ST4000DM000`. Raises UnknownLeaveOut."""
    kind, equals, name = text.partition("=")
    if kind not in set(LeaveOutKind) or (equals and not name):
        raise UnknownLeaveOut(
            f"{text!r} cannot be left out; give maker, model or era, or one set such as maker=Seagate."
        )
    return LeaveOut(LeaveOutKind(kind), name or None)


def find_left_out_sets(
    wanted: Sequence[LeaveOut],
    truth: FailureTruth,
    landmarks: Ints,
    models: Iterable[str],
    split: date,
    split_day: int,
) -> list[LeftOutSet]:
    """Find the wanted sets that have a drive at risk at these landmarks.

    landmarks, split_day: days since 1970-01-01. models: names in any file that is learned from. Raises
    UnknownLeaveOut.
    """
    cohort = gather_cohort(truth, landmarks)
    deaths = Counter(str(name) for name in truth.models[cohort.truth_drive[group_failures(cohort).drive]])
    at_risk = {str(name) for name in truth.models[cohort.truth_drive]}
    everyone = {str(name) for name in truth.models} | set(models)
    found: list[LeftOutSet] = []
    for kind in dict.fromkeys(one.kind for one in wanted):
        if kind is LeaveOutKind.ERA:
            groups = {f"models first seen after {split}": _find_new_models(truth, split_day)}
        else:
            groups = _group_models(everyone, deaths, KEYS[kind])
        sets = [
            LeftOutSet(kind, name, members) for name, members in sorted(groups.items()) if members & at_risk
        ]
        names = {one.name for one in wanted if one.kind is kind}
        strange = sorted(name for name in names if name and name not in {one.name for one in sets})
        if strange:
            known = ", ".join(one.name for one in sets) or "none"
            raise UnknownLeaveOut(f"There is no left-out {kind} {', '.join(strange)}; known are {known}.")
        found += [one for one in sets if None in names or one.name in names]
    return found


def _name_maker(model: str) -> str:
    maker = maker_of(model)
    return "unknown maker" if maker is None else MAKERS[maker]


Key = Callable[[str], str]

KEYS: Final[Mapping[LeaveOutKind, tuple[Key, ...]]] = {
    LeaveOutKind.MAKER: (_name_maker, lambda _: "other makers"),
    LeaveOutKind.MODEL: (
        lambda model: model,
        lambda model: f"other {_name_maker(model)} models",
        lambda _: "other models",
    ),
}
"""Kind -> functions that name the group of a model, the narrowest group first."""


def _group_models(
    models: Iterable[str], deaths: Mapping[str, int], keys: Sequence[Key]
) -> dict[str, frozenset[str]]:
    """Put each model into the narrowest group that has LEAST deaths in total, or else into the widest."""
    left, found = set(models), dict[str, frozenset[str]]()
    for key in keys:
        groups = defaultdict[str, set[str]](set)
        for model in left:
            groups[key(model)].add(model)
        for name, members in groups.items():
            if key is keys[-1] or sum(deaths.get(model, 0) for model in members) >= LEAST:
                found[name] = frozenset(members)
                left -= members
    return found


def _find_new_models(truth: FailureTruth, split_day: int) -> frozenset[str]:
    """Find the models of which no drive was in service by the split day."""
    seen = truth.first <= split_day
    return frozenset(truth.models[~seen].astype(str)) - frozenset(truth.models[seen].astype(str))
