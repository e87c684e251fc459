"""Disks and OSDs at the terminal: tables, CSV and JSON, order and conditions, and one disk with all that is known."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pandas as pd
import pytest

from predrain.service.cli import main
from predrain.service.cli.disk_names import AmbiguousDisk, UnknownDisk, choose_disk
from predrain.service.cli.row_tables import BadChoice, Column, RowChoice, choose_rows, write_csv
from tests.service.conftest import Place, week_of
from tests.service.test_drains import Site, World, proposed, site, world
from tests.service.test_worker import work

__all__ = ["site", "world"]
COLUMNS = (
    Column("name", "name", lambda row: row["name"]),
    Column("temperature", "°C", lambda row: row["heat"], unit="°C", number=True),
)
ROWS = [{"name": "stor-1", "heat": 30}, {"name": "Stor-2", "heat": None}, {"name": "rack", "heat": 52}]


def chosen(*, sort: str = "urgency", **choice: Any) -> list[str]:
    rows = choose_rows(ROWS, COLUMNS, RowChoice(sort=sort, **choice), lambda row: row["name"] != "rack")
    return [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("urgency", ["rack", "stor-1", "Stor-2"]),
        ("temperature", ["stor-1", "rack", "Stor-2"]),
        ("-temperature", ["rack", "stor-1", "Stor-2"]),
        ("name", ["rack", "stor-1", "Stor-2"]),
        ("-name", ["Stor-2", "stor-1", "rack"]),
    ],
)
def test_rows_stand_in_the_order_that_is_asked_for_and_unknown_values_last(
    sort: str, names: list[str]
) -> None:
    assert chosen(sort=sort) == names


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        (["name=stor-*"], ["stor-1", "Stor-2"]),
        (["name!=stor-*"], ["rack"]),
        (["temperature>30"], ["rack"]),
        (["temperature>=30", "name=s*"], ["stor-1"]),
        (["temperature=52"], ["rack"]),
        (["temperature!=52"], ["stor-1"]),
        (["temperature="], ["Stor-2"]),
        (["temperature<31"], ["stor-1"]),
    ],
)
def test_only_rows_that_meet_all_conditions_are_listed(conditions: list[str], names: list[str]) -> None:
    assert sorted(chosen(filter=tuple(conditions)), key=names.index) == names


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ({"sort": "temperatur"}, "'temperature' perhaps"),
        ({"filter": ("size>3",)}, "give name, temperature"),
        ({"filter": ("temperature",)}, "is no condition"),
        ({"filter": ("temperature>hot",)}, "a number in °C"),
        ({"filter": ("name>3",)}, "give name=PATTERN"),
        ({"csv": True, "as_json": True}, "two forms of one answer"),
    ],
)
def test_a_choice_that_cannot_be_made_names_what_can(choice: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadChoice, match=sentence):
        chosen(**choice)


def test_csv_has_units_in_its_header_and_no_cell_that_a_spreadsheet_executes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_csv([{"name": "=HYPERLINK(1)", "heat": 30}, {"name": "a,\nb", "heat": None}], COLUMNS)
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [
        ["name", "temperature (°C)"],
        ["'=HYPERLINK(1)", "30"],
        ["a,\\nb", ""],
    ]


def disk_row(device: str, **known: Any) -> dict[str, Any]:
    return {"device": device, "serial": None, "osds": [], "host": None, "device_name": None, **known}


DISKS = [
    disk_row("WDC_1", serial="WD-1", osds=[3], host="stor-01", device_name="sdb"),
    disk_row("WDC_2", serial="WD-2", osds=[4, 5], host="stor-02", device_name="sdb"),
    disk_row("WDC_3", serial="WD-2", host="stor-02"),
]


@pytest.mark.parametrize(
    ("named", "device"),
    [
        ("WDC_1", "WDC_1"),
        ("wd-1", "WDC_1"),
        ("osd.5", "WDC_2"),
        ("stor-01:sdb", "WDC_1"),
        ("stor-02:/dev/sdb", "WDC_2"),
        ("stor-01:WD-1", "WDC_1"),
    ],
)
def test_a_disk_is_found_by_each_of_its_names(named: str, device: str) -> None:
    assert choose_disk(named, DISKS) == device


def test_two_disks_of_one_name_are_not_guessed_between() -> None:
    with pytest.raises(AmbiguousDisk, match="give one of WDC_2, WDC_3"):
        choose_disk("WD-2", DISKS)


def test_an_unknown_disk_is_told_the_names_near_it() -> None:
    with pytest.raises(UnknownDisk, match=r"near it are .*WD-1"):
        choose_disk("WD-11", DISKS)
    with pytest.raises(UnknownDisk, match="all disks: predrain disks"):
        choose_disk("toshiba", DISKS)


@pytest.fixture
def at(world: World, site: Site, place: Place) -> list[str]:
    """A cluster whose disk under osd.0 is bad, and a disk beside it under a warning; the service that is asked."""
    application = world.application
    application.ingest(week_of("A", application.clock.now(), passed=False, pending=12))
    application.ingest(week_of("B", application.clock.now(), pending=3))
    work(application)
    world.tick(2)
    return ["--url", str(site.client.base_url), "--token-file", str(place.state.token)]


def test_the_worst_disk_stands_first_and_the_table_fits_a_terminal_of_80_columns(
    at: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["disks", *at]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "disk",
        "outlook",
        "30",
        "d",
        "%",
        "host",
        "slot",
        "osd",
        "model",
        "TB",
        "years",
        "°C",
    ]
    assert first.split() == ["A", "bad", "stor-01", "0", "0", "ST4000DM000", "4.0", "2.3", "28"]
    assert second.split()[:2] == ["B", "warning"]
    assert max(map(len, (head, first, second))) <= 80


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00005, "0.00005"),
        (1.25e-9, "0.00000000125"),
        (-0.00001, "-0.00001"),
        (1 / 3, "0.3333333333"),
        (1e10, "10000000000"),
        (2.5e15, "2500000000000000"),
        (12, "12"),
        (0, "0"),
    ],
)
def test_a_number_in_csv_has_no_exponent_and_pandas_reads_the_same_value(
    value: float, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """service/page/src/tables/csv.test.ts has the same numbers."""
    write_csv([{"name": "a", "heat": value}], COLUMNS)
    written = capsys.readouterr().out
    assert next(csv.DictReader(io.StringIO(written)))["temperature (°C)"] == text
    read = pd.read_csv(io.StringIO(written))["temperature (°C)"]
    assert read.dtype.kind in "if"
    assert read[0] == pytest.approx(value, rel=1e-9)


def test_json_gives_the_rows_of_rest_unchanged_and_csv_the_same_disks(
    at: list[str], site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["disks", "--json", "--filter", "severity=bad", *at]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    answered = site.client.get("/api/v1/devices").json()["items"]
    assert row == next(one for one in answered if one["device"] == "ST4000DM000_A")
    assert main(["disks", "--csv", *at]) == 0
    bad, warned = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (bad["id"], bad["slot"], bad["temperature (°C)"]) == ("ST4000DM000_A", "0", "28")
    assert 0 < float(warned["fails_30d (%)"]) < 100


@pytest.mark.slow
def test_a_row_follows_the_forecast_of_its_disk(world: World, at: list[str], site: Site) -> None:
    def asked() -> float:
        rows = site.client.get("/api/v1/devices").json()["items"]
        return next(row["p_fail_30d"] for row in rows if row["device"] == "ST4000DM000_B")

    before = asked()
    world.tick(1, seconds=86_400)
    world.application.ingest(week_of("B", world.application.clock.now(), pending=60)[-1:])
    work(world.application)
    outlook = site.client.get("/api/v1/devices/ST4000DM000_B").json()["outlook"]
    assert asked() == outlook["p_fail_30d"] != before


def test_osds_are_listed_with_their_drain_and_the_most_urgent_first(
    at: list[str], site: Site, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    proposed(site, "osd.5")
    assert main(["osds", "--csv", *at]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 12
    assert (rows[0]["osd"], rows[0]["severity"], rows[0]["map"]) == ("0", "bad", "up in")
    assert [row["osd"] for row in rows if row["drain"]] == ["5"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["osd.0", "A", "st4000dm000_a", "stor-01:A"])
def test_one_disk_is_shown_with_all_that_the_page_shows(
    at: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["disk", name, *at]) == 0
    shown = capsys.readouterr().out
    for part in (
        "osd.0, ST4000DM000_A: bad, by rule verdict",
        "Drain it now and replace the disk.",
        "host          stor-01, slot 0",
        "own verdict   FAILED",
        "1. The drive's own verdict is FAILED.",
        "Alive, its model:",
        "pending                 0 -> 12",
        "predrain drain plan osd.0",
        "alert, bad:",
    ):
        assert part in shown, part


def test_the_json_of_one_disk_is_what_rest_answers(
    at: list[str], site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["disk", "B", "--json", *at]) == 0
    told = json.loads(capsys.readouterr().out)
    path = "/api/v1/devices/ST4000DM000_B"
    assert told["device"] == site.client.get(path).json()
    assert told["host"] == site.client.get(f"{path}/host").json()
    assert (told["osds"], told["history"]["device"]) == ([], "ST4000DM000_B")


def test_an_unknown_disk_ends_with_the_names_near_it(
    at: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["disk", "osd.99", *at]) == 1
    assert "near it are osd.0" in capsys.readouterr().err


def test_a_list_of_several_pages_is_read_to_its_end(
    at: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("predrain.service.cli.disk_rows.PAGE_ROWS", 5)
    assert main(["osds", "--json", "--sort", "osd", *at]) == 0
    assert [row["osd"] for row in json.loads(capsys.readouterr().out)] == list(range(12))


def test_events_are_written_as_csv(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "--csv", "--since", "30d", *at]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {"at (UTC)", "kind", "sentence"} <= rows[0].keys()
    assert any("ST4000DM000_A" in row["id"] for row in rows)
