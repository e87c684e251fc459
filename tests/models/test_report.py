"""The report's numbers read as people read them, and its pictures turn with the page's colours."""

from __future__ import annotations

import importlib.util
import math
from datetime import date
from typing import TYPE_CHECKING

import pytest

from predrain.models.evaluate import BootstrapInterval
from predrain.models.report import NoPlotting, ready
from predrain.models.report.charts import bytes_chart
from predrain.models.report.ink import INK, SERIES, VARIABLES, drawn
from predrain.models.report.tables import table
from predrain.models.report.words import day, joined, percent, plain, points, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAN = math.nan


def line(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=SERIES[0])
    axes.annotate("here", (0.5, 0.5), color=INK)


@pytest.mark.slow
def test_a_picture_has_no_colour_of_its_own_and_is_named_for_those_who_cannot_see_it() -> None:
    svg = drawn(line, "A line")
    assert svg.startswith("<svg")
    assert 'role="img" aria-label="A line"' in svg
    assert not any(stand_in in svg for stand_in in VARIABLES)
    assert "var(--series-0)" in svg
    assert "var(--ink)" in svg
    assert "var(--letters)" in svg


def test_the_same_picture_is_drawn_to_the_same_bytes() -> None:
    assert drawn(line, "A line") == drawn(line, "A line")


def test_notches_that_fall_together_are_named_together() -> None:
    svg = bytes_chart(["as it is", "x 2", "1 %"], [0.5, 0.5, 1.0], [20.0, 20.0, 40.0], 0)
    assert "as it is, x 2" in svg


def test_a_share_is_said_in_percents_with_its_interval_and_an_unknown_as_a_dash() -> None:
    assert share(BootstrapInterval(0.538, 0.44, 0.634)) == "54 % [44, 63]"
    assert share(BootstrapInterval(0.0011, NAN, NAN), 2) == "0.11 %"
    assert percent(NAN) == "–"
    assert plain(BootstrapInterval(0.1221, 0.06, 0.2)) == "0.122 [0.060, 0.200]"
    assert plain(BootstrapInterval(NAN, NAN, NAN)) == "–"


def test_a_difference_of_shares_is_said_in_points() -> None:
    assert points(BootstrapInterval(0.1442, 0.0718, 0.2269)) == "+14.4 [+7.2, +22.7]"


def test_days_and_lists_read_as_sentences_do() -> None:
    assert day(date(2018, 4, 3)) == day("2018-04-03") == "3 April 2018"
    assert [joined(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_what_a_file_is_called_cannot_become_markup() -> None:
    assert "<b>" not in table("<b>", ["<b>"], [["<b>", "<b>"]])


def test_without_the_plotting_library_the_cure_is_said_before_anything_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ready()
    monkeypatch.setattr("predrain.models.report.ink.find_spec", lambda _name: None)
    with pytest.raises(NoPlotting, match=r"predrain\[report\]"):
        ready()
    assert importlib.util.find_spec("matplotlib") is not None
