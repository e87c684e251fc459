"""Tests of the verdict of `make bench` on a target: met or missed by the figure, and none without the baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.bench.__main__ import MISSED, _row, _run, figures
from tests.bench.figure import Figure, Work

TWICE = Figure(
    "copies", "rows", lambda: Work(), lambda: Work(), "one worker", "twice its rate", least_rate=2.0
)


def measured(seconds: float, cpu: float = 1.0) -> dict[str, Any]:
    return {"amount": 100.0, "seconds": seconds, "cpu": cpu, "gigabytes": 0.1, "note": ""}


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.name)
def test_every_figure_with_a_target_is_compared_with_it(figure: Figure) -> None:
    compared = figure.meets is not None or figure.most_times is not None or figure.least_rate is not None
    assert compared or not figure.target


@pytest.mark.parametrize(("seconds", "verdict"), [(1.0, "met"), (1.1, MISSED)])
def test_a_target_of_rates_is_met_by_the_rate_alone(seconds: float, verdict: str) -> None:
    assert _row(TWICE, measured(seconds), measured(2.0))[-1].startswith(verdict)


@pytest.mark.parametrize(("cpu", "verdict"), [(3.0, "met"), (3.1, MISSED)])
def test_a_target_of_processor_time_is_met_by_processor_time_alone(cpu: float, verdict: str) -> None:
    figure = replace(TWICE, least_rate=None, most_times=3.0)
    assert _row(figure, measured(9.0, cpu), measured(1.0))[-1].startswith(verdict)


def test_a_target_beside_a_baseline_that_is_absent_is_neither_met_nor_missed() -> None:
    assert _row(TWICE, measured(1.0), {"absent": "no Kafka"})[-1] == ""


@pytest.mark.parametrize("work", [Work(), Work(amount=5.0), Work(seconds=5.0)])
def test_a_side_without_a_rate_could_not_be_measured(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(replace(TWICE, ours=lambda: work), "ours") == 1
    assert "no rate" in capsys.readouterr().err
