"""Degrees and their combination: bounded, never lower for more evidence, and documented to the last breakpoint."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.outlook import Advice, Reason, Status
from models.rules import CODES
from models.rules.evidence import BAD, SUPPORT, WARNING, Sign, score_of, status_of
from models.rules.ramps import RAMPS, Ramp

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "rules.md"


def sign(degree: float, cause: str) -> Sign:
    return Sign("x", degree, cause, Reason("x", "X."), Advice.WATCH, "")


signs = st.lists(st.builds(sign, st.floats(0, 1), st.sampled_from("abcd")), max_size=6)


@given(signs)
def test_a_score_is_at_least_its_strongest_sign_and_at_most_one(found: list[Sign]) -> None:
    assert max((one.degree for one in found), default=0.0) <= score_of(found) <= 1


@given(signs, st.builds(sign, st.floats(0, 1), st.sampled_from("abcde")))
def test_a_further_sign_never_lowers_the_score(found: list[Sign], more: Sign) -> None:
    assert score_of([*found, more]) >= score_of(found) - 1e-12


@given(signs, st.floats(0, 1))
def test_a_stronger_sign_never_lowers_the_score(found: list[Sign], degree: float) -> None:
    stronger = [replace(one, degree=max(one.degree, degree)) for one in found]
    assert score_of(stronger) >= score_of(found) - 1e-12


@given(signs)
def test_the_order_of_signs_does_not_matter(found: list[Sign]) -> None:
    assert score_of(found) == pytest.approx(score_of(found[::-1]))


def test_signs_of_one_cause_are_one_witness_and_of_two_causes_support_each_other() -> None:
    assert score_of([sign(0.4, "wear"), sign(0.3, "wear")]) == 0.4
    assert score_of([sign(0.4, "wear"), sign(0.3, "heat")]) == pytest.approx(0.4 + 0.6 * 0.15)


def test_old_wear_and_heat_together_warn_and_never_drain() -> None:
    worst = [sign(RAMPS["wear"](255), "wear"), sign(0.4, "heat")]
    assert status_of(score_of(worst)) is Status.WARNING


def test_no_old_level_but_media_errors_warns_by_itself() -> None:
    levels = ("uncorrectable", "reallocated", "uncorrected", "grown-defects")
    assert all(RAMPS[name](2.0**31) < WARNING for name in levels)
    assert WARNING <= RAMPS["media-errors"](2.0**31) < BAD


@pytest.mark.parametrize("name", RAMPS)
def test_a_ramp_passes_through_its_breakpoints_and_is_monotone(name: str) -> None:
    ramp = RAMPS[name]
    assert [ramp(x) for x, _ in ramp.points] == pytest.approx([y for _, y in ramp.points])
    low, high = ramp.points[0][0], ramp.points[-1][0]
    along = [ramp(low + (high - low) * step / 500) for step in range(-50, 600)]
    assert all(0 <= degree <= 1 for degree in along)
    rising = ramp.points[-1][1] > ramp.points[0][1]
    assert along == sorted(along, reverse=not rising)


def test_a_logarithmic_ramp_says_nothing_of_a_count_below_its_first_breakpoint() -> None:
    assert Ramp("x", ((10, 0.4), (100, 0.6)), "", logarithmic=True)(9) == 0


def test_the_reference_lists_every_breakpoint_with_its_source_both_cut_offs_and_every_code() -> None:
    text = re.sub(r"\s+", " ", REFERENCE.read_text())
    for ramp in RAMPS.values():
        points = ", ".join(f"{x:g}: {y:g}" for x, y in ramp.points)
        row = f"| {ramp.measures} | {points}{' (log)' if ramp.logarithmic else ''} | {ramp.source} |"
        assert row in text
    for number in (WARNING, BAD, SUPPORT):
        assert f"{number:g}" in text
    assert [code for code in CODES if f"`{code}`" not in text] == []
