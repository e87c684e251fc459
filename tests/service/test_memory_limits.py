"""How much memory the service may take: the table of the documentation, and the drop-in that doctor proposes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from predrain.data.clock import SystemClock
from predrain.service.config.settings import Settings
from predrain.service.doctor import local_checks
from predrain.service.doctor.local_checks import MIB, memory_limits
from tests.service.conftest import Place, shut, smart_reading
from tests.service.test_worker import work

SIZE = Path(__file__).parents[2] / "docs/how-to/size.md"
ROW = re.compile(r"(?m)^\| ([\d,]+) \| ([\d,]+) MiB \| ([\d,]+) MiB \|$")


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_the_table_of_the_documentation_is_what_the_function_computes() -> None:
    rows = ROW.findall(SIZE.read_text())
    assert len(rows) > 5
    for disks, high, most in rows:
        limits = memory_limits(number(disks))
        assert (limits.high_bytes // MIB, limits.max_bytes // MIB) == (number(high), number(most))


def test_a_process_that_was_measured_fits_below_its_limit() -> None:
    assert memory_limits(6_000).high_bytes > 577e6, "the most that was seen, with readers and a flood"


def test_doctor_proposes_the_drop_in_by_the_disks_of_the_store(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = tmp_path / "units"
    units.mkdir()
    (units / local_checks.UNIT).touch()
    monkeypatch.setattr(local_checks, "UNIT_FOLDERS", (units,))
    monkeypatch.setattr(local_checks, "DROP_INS", tmp_path / "drop-ins")
    application = place.application()
    application.start()
    application.ingest([smart_reading("A"), smart_reading("B")])
    work(application)
    shut(application)
    (finding,) = local_checks._check_memory_limits(place.settings, SystemClock())
    assert finding.state == "note"
    assert "for 2 disks" in finding.told
    assert "MemoryHigh=768M\\nMemoryMax=1280M" in finding.told
    folder = tmp_path / "drop-ins"
    folder.mkdir()
    (folder / "memory.conf").write_text(memory_limits(2).drop_in())
    (finding,) = local_checks._check_memory_limits(place.settings, SystemClock())
    assert finding.state == "ok"


def test_doctor_says_nothing_of_units_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_checks, "UNIT_FOLDERS", (tmp_path,))
    assert list(local_checks._check_memory_limits(Settings(), SystemClock())) == []
