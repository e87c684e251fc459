"""Any mutation of a recorded cluster gives a view or one sentence, and nothing moves on what is not known."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.cluster.dumps import ClusterReader, NotUnderstood, RawAnswers
from predrain.actions.core.pg_survey import survey_pgs
from predrain.data.ids import OsdId
from tests.actions.recordings import CLEAN, NAMES, brief, replaced, sample, steps

BRIEF_NAMES = ("pg_brief", "pg_sum")
DUMPS = (*sorted(CLEAN.raw), *BRIEF_NAMES)

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=8),
    st.builds(list), st.builds(dict), st.builds(lambda: [{}]), st.just("999.fff"), st.just(2147483647),
)  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """A recorded cluster of which one answer was changed, and how."""

    told: str
    answers: RawAnswers = field(repr=False)


@st.composite
def mutations(draw: st.DrawFn) -> Mutation:
    """One to three places of one answer replaced, removed or doubled; or its bytes torn."""
    recorded, name = draw(st.sampled_from(NAMES)), draw(st.sampled_from(DUMPS))
    answers = sample(recorded).answers
    if name in BRIEF_NAMES:
        answers = brief(answers)
    if draw(st.integers(0, 4)) == 0:
        torn = bytearray(answers.raw[name])
        for _ in range(draw(st.integers(1, 3))):
            torn[draw(st.integers(0, len(torn) - 1))] = draw(st.integers(0, 255))
        end = draw(st.integers(0, len(torn))) if draw(st.booleans()) else len(torn)
        return Mutation(f"{recorded}: {name} torn", replaced(answers, name, bytes(torn[:end])))
    whole = json.loads(answers.raw[name])
    told = [_spoil(draw, whole) for _ in range(draw(st.integers(1, 3)))]
    return Mutation(f"{recorded}: {name} {told}", replaced(answers, name, json.dumps(whole).encode()))


def _spoil(draw: st.DrawFn, whole: Any) -> str:
    here, path = whole, ""
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return "nothing"
        key = draw(st.sampled_from(keys))
        below, path = here[key], f"{path}/{key}"
        if isinstance(below, dict | list) and below and draw(st.integers(0, 9)) < 9:
            here = below
            continue
        break
    how = draw(st.sampled_from(("replace", "remove", "double")))
    match how:
        case "replace":
            here[key] = draw(VALUES)
            how = f"becomes {here[key]!r}"
        case "remove":
            del here[key]
        case _ if isinstance(here, list):
            here.append(below)
        case _:
            here[f"{key}_"] = below
    return f"{path} {how}"


@pytest.mark.slow
@given(mutations())
@settings(max_examples=300)
def test_any_mutation_of_a_recorded_cluster_at_a_later_look_gives_a_view_or_one_sentence(
    mutation: Mutation,
) -> None:
    reader = ClusterReader()
    reader.view(CLEAN)
    try:
        view = reader.view(mutation.answers)
    except NotUnderstood:
        return
    survey_pgs(view)
    if not view.statistics_known and OsdId(0) in view.osds:
        assert not steps(view)
