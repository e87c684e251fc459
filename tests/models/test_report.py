"""The report's numbers read as people read them, and its pictures turn with the page's colours."""

from __future__ import annotations

import importlib.util
import math
from datetime import date
from typing import TYPE_CHECKING

import pytest

from predrain.models.evaluate import BootstrapInterval
from predrain.models.lab.report import NoPlotting, require_report_packages
from predrain.models.lab.report.charts import bytes_chart
from predrain.models.lab.report.report_page import render_template
from predrain.models.lab.report.report_tables import TableText
from predrain.models.lab.report.report_texts import (
    format_interval,
    format_long_date,
    format_percent,
    format_percentage_points,
    format_share,
    join_with_and,
)
from predrain.models.lab.report.svg_drawing import INK, SERIES, VARIABLES, draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAN = math.nan


def line(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=SERIES[0])
    axes.annotate("here", (0.5, 0.5), color=INK)


@pytest.mark.slow
def test_a_picture_has_no_colour_of_its_own_and_is_named_for_those_who_cannot_see_it() -> None:
    svg = draw_svg(line, "A line")
    assert svg.startswith("<svg")
    assert 'role="img" aria-label="A line"' in svg
    assert not any(stand_in in svg for stand_in in VARIABLES)
    assert "var(--series-0)" in svg
    assert "var(--ink)" in svg
    assert "var(--letters)" in svg


def test_the_same_picture_is_drawn_to_the_same_bytes() -> None:
    assert draw_svg(line, "A line") == draw_svg(line, "A line")


def test_notches_that_fall_together_are_named_together() -> None:
    svg = bytes_chart(["as it is", "x 2", "1 %"], [0.5, 0.5, 1.0], [20.0, 20.0, 40.0], 0)
    assert "as it is, x 2" in svg


def test_a_share_is_said_in_percents_with_its_interval_and_an_unknown_as_a_dash() -> None:
    assert format_share(BootstrapInterval(0.538, 0.44, 0.634)) == "54 % [44, 63]"
    assert format_share(BootstrapInterval(0.0011, NAN, NAN), 2) == "0.11 %"
    assert format_percent(NAN) == "–"
    assert format_interval(BootstrapInterval(0.1221, 0.06, 0.2)) == "0.122 [0.060, 0.200]"
    assert format_interval(BootstrapInterval(NAN, NAN, NAN)) == "–"


def test_a_difference_of_shares_is_said_in_points() -> None:
    assert format_percentage_points(BootstrapInterval(0.1442, 0.0718, 0.2269)) == "+14.4 [+7.2, +22.7]"


def test_days_and_lists_read_as_sentences_do() -> None:
    assert format_long_date(date(2018, 4, 3)) == format_long_date("2018-04-03") == "3 April 2018"
    assert [join_with_and(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]


def test_a_file_name_in_a_table_cannot_become_markup() -> None:
    table = TableText("<b>", ["<b>"], [["<b>", "<b>"]])
    assert "<b>" not in render_template("table.html.jinja", table=table)


def test_without_the_plotting_library_the_cure_is_said_before_anything_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_report_packages()
    monkeypatch.setattr("predrain.models.lab.report.svg_drawing.find_spec", lambda _name: None)
    with pytest.raises(NoPlotting, match=r"predrain\[report\]"):
        require_report_packages()
    assert importlib.util.find_spec("matplotlib") is not None
