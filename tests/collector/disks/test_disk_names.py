"""The file that keeps disks' names: any damage costs names, never a start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.collector.disks.disk_names import DiskNames, KnownDisk
from predrain.data.ids import DeviceId

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALPHA = KnownDisk(DeviceId("WDC_ALPHA"), "5000c500a", "naa.a")


def _kept(file: Path) -> DiskNames:
    names = DiskNames(file)
    names.learn_disk("/dev/sda", ALPHA)
    names.record_failure(ALPHA.device, NOW)
    names.save()
    return names


def test_names_and_failures_come_back(tmp_path: Path) -> None:
    _kept(tmp_path / "deep" / "names.json")
    again = DiskNames(tmp_path / "deep" / "names.json")
    assert again.places == {"/dev/sda": ALPHA}
    assert again.record_failure(ALPHA.device, NOW + timedelta(days=1)) == NOW
    assert again.trouble is None


def test_a_clock_that_was_set_back_puts_no_failure_into_the_future(tmp_path: Path) -> None:
    names = _kept(tmp_path / "names.json")
    assert names.record_failure(ALPHA.device, NOW - timedelta(days=1)) == NOW - timedelta(days=1)


def test_another_disk_at_the_place_is_not_called_by_the_old_name() -> None:
    names = DiskNames(None)
    names.learn_disk("/dev/sda", ALPHA)
    assert names.find_disk("/dev/sda", "naa.a") == ALPHA
    assert names.find_disk("/dev/sda", None) == ALPHA
    assert names.find_disk("/dev/sda", "naa.b") is None
    assert names.find_disk("/dev/sdb", "naa.a") == ALPHA
    assert names.find_disk("/dev/sdb", None) is None


@given(st.data())
def test_a_damaged_file_costs_names_and_never_a_start(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = tmp_path_factory.mktemp("names") / "names.json"
    _kept(file)
    whole = file.read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    file.write_bytes(whole[:cut] + data.draw(st.binary(max_size=40)))
    names = DiskNames(file)
    names.learn_disk("/dev/sdb", ALPHA)
    names.save()
    assert DiskNames(file).find_disk("/dev/sdb", "naa.a") == ALPHA


def test_a_file_of_a_later_format_is_told_and_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "names.json"
    file.write_text('{"format": 2, "places": {}, "failing": {}}')
    assert "format 2" in (DiskNames(file).trouble or "")


def test_a_full_disk_costs_the_file_and_not_the_round(tmp_path: Path) -> None:
    (tmp_path / "names.json").mkdir()
    names = DiskNames(tmp_path / "names.json")
    names.learn_disk("/dev/sda", ALPHA)
    names.save()
    assert "cannot be written" in (names.trouble or "")
    assert names.find_disk("/dev/sda", None) == ALPHA


def test_an_unchanged_file_is_not_written_again(tmp_path: Path) -> None:
    file = tmp_path / "names.json"
    names = _kept(file)
    before = file.stat().st_ino
    names.learn_disk("/dev/sda", ALPHA)
    names.save()
    assert file.stat().st_ino == before
