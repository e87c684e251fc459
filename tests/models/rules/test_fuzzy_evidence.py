"""Degrees and their combination: bounded, never lower for more evidence, and documented to the last breakpoint."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.outlook import Advice, Reason, Status
from predrain.models.forecast.rules import CODES
from predrain.models.forecast.rules.fleet_levels import LEVELS, DriveKind, get_worst_limit
from predrain.models.forecast.rules.fuzzy_evidence import (
    BAD,
    SUPPORT,
    WARNING,
    DefectSign,
    score_of,
    status_of,
)
from predrain.models.forecast.rules.membership_functions import RAMPS, DegreeRamp

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "rules.md"


def sign(degree: float, cause: str) -> DefectSign:
    return DefectSign("x", degree, cause, Reason("x", "X."), Advice.WATCH, "")


signs = st.lists(st.builds(sign, st.floats(0, 1), st.sampled_from("abcd")), max_size=6)


@given(signs)
def test_a_score_is_at_least_its_strongest_sign_and_at_most_one(found: list[DefectSign]) -> None:
    assert max((one.degree for one in found), default=0.0) <= score_of(found) <= 1


@given(signs, st.builds(sign, st.floats(0, 1), st.sampled_from("abcde")))
def test_a_further_sign_never_lowers_the_score(found: list[DefectSign], more: DefectSign) -> None:
    assert score_of([*found, more]) >= score_of(found) - 1e-12


@given(signs, st.floats(0, 1))
def test_a_stronger_sign_never_lowers_the_score(found: list[DefectSign], degree: float) -> None:
    stronger = [replace(one, degree=max(one.degree, degree)) for one in found]
    assert score_of(stronger) >= score_of(found) - 1e-12


@given(signs)
def test_the_order_of_signs_does_not_matter(found: list[DefectSign]) -> None:
    assert score_of(found) == pytest.approx(score_of(found[::-1]))


def test_signs_of_one_cause_are_one_witness_and_of_two_causes_support_each_other() -> None:
    assert score_of([sign(0.4, "wear"), sign(0.3, "wear")]) == 0.4
    assert score_of([sign(0.4, "wear"), sign(0.3, "heat")]) == pytest.approx(0.4 + 0.6 * 0.15)


def test_old_wear_and_heat_together_warn_and_never_drain() -> None:
    worst = [sign(RAMPS["wear"](255), "wear"), sign(0.4, "heat")]
    assert status_of(score_of(worst)) is Status.WARNING


@pytest.mark.parametrize("ramp", [*LEVELS.values(), RAMPS["uncorrected"]], ids=lambda ramp: ramp.measures)
def test_no_level_by_itself_calls_a_drive_bad(ramp: DegreeRamp) -> None:
    assert ramp(2.0**31) < BAD


@pytest.mark.parametrize(("kind", "counter"), [one for one in LEVELS if one[1] != "command_timeouts"])
def test_a_level_that_one_percent_of_the_drives_in_service_reach_is_a_warning(
    kind: DriveKind, counter: str
) -> None:
    worst = get_worst_limit(kind, counter)
    assert LEVELS[kind, counter](worst) >= WARNING
    assert worst == 1 or LEVELS[kind, counter](worst - 1) < WARNING


def test_io_errors_alone_never_call_a_drive_bad() -> None:
    assert WARNING <= RAMPS["io-errors"](1e9) < BAD


@pytest.mark.parametrize("ramp", [*RAMPS.values(), *LEVELS.values()], ids=lambda ramp: ramp.measures)
def test_a_ramp_passes_through_its_breakpoints_and_is_monotone(ramp: DegreeRamp) -> None:
    assert [ramp(x) for x, _ in ramp.points] == pytest.approx([y for _, y in ramp.points])
    low, high = ramp.points[0][0], ramp.points[-1][0]
    along = [ramp(low + (high - low) * step / 500) for step in range(-50, 600)]
    assert all(0 <= degree <= 1 for degree in along)
    rising = ramp.points[-1][1] >= ramp.points[0][1]
    assert along == sorted(along, reverse=not rising)


def test_a_logarithmic_ramp_says_nothing_of_a_count_below_its_first_breakpoint() -> None:
    assert DegreeRamp("x", ((10, 0.4), (100, 0.6)), "", logarithmic=True)(9) == 0


def test_the_reference_names_both_cut_offs_and_every_code() -> None:
    text = re.sub(r"\s+", " ", REFERENCE.read_text())
    for number in (WARNING, BAD, SUPPORT):
        assert f"{number:g}" in text
    assert [code for code in CODES if f"`{code}`" not in text] == []
