"""The runner of checks: parts run side by side, a failing part is shown whole, and the time of each part is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import check_runner, rooms
from tests.check_runner import Took


@pytest.fixture(autouse=True)
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / ".times"
    monkeypatch.setattr(check_runner, "TIMES", file)
    return file


def test_parts_run_side_by_side(tmp_path: Path) -> None:
    """Each part succeeds only if the other one begins before it ends."""
    meet = "cd {folder}; touch {mine}; timeout 30 sh -c 'until [ -e {other} ]; do sleep 0.05; done'"
    one = meet.format(folder=tmp_path, mine="one", other="two")
    two = meet.format(folder=tmp_path, mine="two", other="one")
    assert check_runner.main([f"one={one}", f"two={two}"]) == 0


def test_a_part_that_fails_fails_the_run_and_its_output_is_shown_whole(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert check_runner.main(["tests=true", "types=echo 'three errors'; exit 3", "format=echo quiet"]) == 1
    shown = capfd.readouterr().out
    assert "three errors" in shown
    assert "types: FAILED (exit code 3)" in shown
    assert "quiet" not in shown, "a part that succeeds prints nothing unless it ran tests"


def test_the_closing_line_of_tests_is_shown_though_they_were_not_live(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert check_runner.main(["live=true", "ceph=echo '7 passed in 3 s'"]) == 0
    assert "7 passed" in capfd.readouterr().out


def test_the_table_tells_downloads_apart_and_compares_the_rest_with_the_budget(
    times: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    check_runner.print_table([Took("downloads", 100), Took("downloads", 20), Took("tests", 300, 500)], 420, 6)
    shown = capfd.readouterr().out
    assert "total: 5.0 minutes, and 2.0 minutes of downloads" in shown
    assert "within" in shown
    check_runner.print_table([Took("tests", 420)], 420, 6)
    assert "OVER" in capfd.readouterr().out


def test_times_are_read_back_as_they_were_written(times: Path) -> None:
    took = [Took("downloads", 3.5), Took("tests", 10.0, 17.5)]
    check_runner.write_times(times, took[:1])
    check_runner.write_times(times, took[1:])
    assert check_runner.read_times(times) == took


def test_rooms_are_checked_with_all_that_import_them() -> None:
    """The import contracts name the layers; a package that may be imported from above is checked from above."""
    assert set(rooms.IMPORTERS) == set(rooms.TESTS)
    for room, importers in rooms.IMPORTERS.items():
        assert all(set(rooms.IMPORTERS[one]) <= set(importers) for one in importers), room
    commands = "\n".join(rooms.list_parts("actions"))
    assert "-p predrain.actions -p predrain.service" in commands
    assert "tests/properties" in commands
