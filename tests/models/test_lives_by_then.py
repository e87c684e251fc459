"""Counts of whole lives as they were known on a day: nothing that came later is in them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import pytest

from predrain.models.tables.make import count_lives


@pytest.fixture
def drives(tmp_path: Path) -> Path:
    tables = {
        "lifetable_st4000dm000": "VALUES (2016, 0, 36525, 3, 0), (2017, 13, 73050, 5, 0), (2018, 26, 36525, 9, 0)",
        "lifetimes_2016_2025": (
            "VALUES ('A', 'X', DATE '2017-01-01', DATE '2019-01-01', 'failed'), "
            "('B', 'X', DATE '2017-01-01', DATE '2017-07-02', 'failed'), "
            "('C', 'Y', DATE '2018-06-01', DATE '2020-06-01', 'failed')"
        ),
    }
    columns = {
        "lifetable_st4000dm000": "(year, age_month, drive_days, failed, removed)",
        "lifetimes_2016_2025": "(serial_number, model, installed, end_date, event)",
    }
    for name, rows in tables.items():
        file = tmp_path / f"{name}.parquet"
        duckdb.sql(f"COPY (SELECT * FROM ({rows}) AS t{columns[name]}) TO '{file}' (FORMAT parquet)")
    return tmp_path


def test_without_a_day_everything_counts(drives: Path) -> None:
    counted = count_lives(drives)
    assert [deaths for deaths, _ in counted["ST4000DM000"]][:3] == [3, 5, 9]
    assert sum(deaths for deaths, _ in counted["X"]) == 2
    assert counted["Y"][1][0] == 0
    assert counted["Y"][2][0] == 1


def test_by_a_day_later_deaths_later_drives_and_years_that_were_not_over_do_not_count(drives: Path) -> None:
    counted = count_lives(drives, date(2018, 4, 30))
    assert [deaths for deaths, _ in counted["ST4000DM000"]][:3] == [3, 5, 0]
    assert [deaths for deaths, _ in counted["X"]][:2] == [1, 0], "A still lived"
    assert sum(years for _, years in counted["X"]) == pytest.approx((484 + 182) / 365.25)
    assert "Y" not in counted
