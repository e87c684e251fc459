"""The growth bench finds bends, judges by goals, and measures a real service of a few disks."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.bench.growth import probing
from tests.bench.growth.__main__ import build_table, describe_value, main, read_figures
from tests.bench.growth.growth_picture import draw_growth
from tests.bench.growth.measures import (
    MEASURES,
    GrowthBend,
    GrowthMeasure,
    GrowthSeries,
    MeasureName,
    SizeFigures,
    find_bend,
)
from tests.bench.growth.probing import GrowthFailed, ProcessProbe, wait_for, wait_until_at_rest
from tests.bench.growth.service_control import start_service

SHARED_ONLY = {MeasureName.SERVERS, MeasureName.PAGE_MEMORY}


def find_measure(name: MeasureName) -> GrowthMeasure:
    return next(one for one in MEASURES if one.name is name)


def test_a_line_bends_where_its_slope_changes_most() -> None:
    points = [(10, 5.0), (100, 5.0), (1_000, 10.0), (10_000, 100.0), (100_000, 1_000.0)]
    bend = find_bend(points)
    assert bend is not None
    assert bend.disks == 1_000
    assert bend == GrowthBend(1_000, pytest.approx(0.301, abs=1e-3), pytest.approx(1.0))


def test_a_straight_line_has_no_bend() -> None:
    assert find_bend([(500, 5.0), (6_000, 60.0), (50_000, 500.0)]) is None


def test_two_sizes_have_no_bend() -> None:
    assert find_bend([(500, 5.0), (6_000, 600.0)]) is None


def test_a_value_of_zero_or_less_is_no_point_of_a_line() -> None:
    assert find_bend([(500, -1.0), (6_000, 5.0), (50_000, 5.0)]) is None


def test_a_value_over_its_goal_is_missed() -> None:
    memory = find_measure(MeasureName.STEADY)
    assert describe_value(memory, GrowthSeries.ONE_PROCESS, 50_000, 1388.0) == "1,388 (900 MISSED)"
    assert describe_value(memory, GrowthSeries.ONE_PROCESS, 500, 177.2) == "177 (200 met)"


def test_workers_and_other_sizes_have_no_goal_of_memory() -> None:
    memory = find_measure(MeasureName.STEADY)
    assert describe_value(memory, GrowthSeries.TWO_WORKERS, 50_000, 1388.0) == "1,388"
    assert describe_value(memory, GrowthSeries.ONE_PROCESS, 300_000, 1388.0) == "1,388"


def test_a_wait_that_is_in_vain_ends_and_names_what_did_not_come() -> None:
    with pytest.raises(GrowthFailed, match="the first score did not come within"):
        wait_for("the first score", lambda: False, 0.01, pause=0.001)


def test_a_picture_is_drawn_of_sizes_that_lack_figures(tmp_path: Path) -> None:
    found = [
        SizeFigures(GrowthSeries.ONE_PROCESS, disks, {MeasureName.STEADY: value, MeasureName.GROWTH: -0.1})
        for disks, value in ((500, 180.0), (6_000, 260.0), (50_000, 1200.0))
    ]
    draw_growth(found, tmp_path / "made" / "growth.png")
    assert (tmp_path / "made" / "growth.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_service_that_does_not_start_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    with (
        pytest.raises(GrowthFailed, match=r"ended with 1(.|\n)*no_such_key"),
        start_service(tmp_path, "up", 1, "no_such_key = 1\n"),
    ):
        pass


@pytest.mark.slow
def test_every_figure_of_one_process_is_measured_on_a_real_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tiny = [
        "--sizes",
        "40",
        "--shared-sizes",
        "",
        "--steady-seconds",
        "5",
        "--restarts",
        "1",
        "--at-once",
        "200",
        "--unsettled",
    ]
    assert main([*tiny, "--json"]) == 0
    said = capsys.readouterr()
    assert list(tmp_path.iterdir()) == []
    assert "one process, 40 disks: filling the store" in said.err

    (tmp_path / "lines").write_text(said.out)
    (figures,) = read_figures(tmp_path / "lines")
    assert set(figures.values) == set(MeasureName) - SHARED_ONLY
    # The kernel counts processor time in ticks of 10 ms, and the page's data of 40 disks can take less.
    may_be_none = (MeasureName.GROWTH, MeasureName.PAGE_CPU)
    assert all(value > 0 for name, value in figures.values.items() if name not in may_be_none)
    assert figures.values[MeasureName.PAGE_CPU] >= 0
    assert figures.values[MeasureName.PEAK] >= figures.values[MeasureName.STEADY]
    assert figures.values[MeasureName.SCORE] >= figures.values[MeasureName.READY]
    assert json.loads(said.out)["goals"][MeasureName.GROWTH] == 0.5
    table = build_table([figures], GrowthSeries.ONE_PROCESS)
    assert table.row_count == len(figures.values)


@pytest.mark.parametrize(
    ("code", "rests"),
    [("import time; time.sleep(600)", True), ("while True: pass", False)],
    ids=["idle", "busy"],
)
def test_a_process_is_at_rest_once_it_takes_hardly_any_processor(
    code: str, rests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "REST_SECONDS", 1.0)
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        try:
            if rests:
                wait_until_at_rest(ProcessProbe((process.pid,)), 60.0)
            else:
                with pytest.raises(GrowthFailed, match="did not come to rest"):
                    wait_until_at_rest(ProcessProbe((process.pid,)), 0.5)
        finally:
            process.kill()
