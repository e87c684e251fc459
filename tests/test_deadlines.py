"""Deadlines in seconds of an idle machine: a busy or slow machine has longer, and an idle one exactly as long."""

from __future__ import annotations

import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.deadlines import IdleClock, read_crowding, scale_timeout


def loadavg(folder: Path, minute: float, runnable: int) -> Path:
    file = folder / "loadavg"
    file.write_text(f"{minute} 1.0 1.0 {runnable}/900 12345\n")
    return file


def test_an_idle_machine_is_not_crowded(tmp_path: Path) -> None:
    assert read_crowding(loadavg(tmp_path, 0.1, 1)) == 1.0


@given(minute=st.floats(0, 200), runnable=st.integers(1, 200))
def test_a_machine_is_as_crowded_as_the_larger_of_its_average_and_this_moment(
    tmp_path_factory: object, minute: float, runnable: int
) -> None:
    folder = tmp_path_factory.mktemp("load")  # type: ignore[attr-defined]
    crowding = read_crowding(loadavg(folder, round(minute, 2), runnable))
    assert crowding >= 1.0
    assert crowding >= read_crowding(loadavg(folder, round(minute / 2, 2), 1))


def test_the_clock_of_a_slow_machine_advances_more_slowly() -> None:
    slow, began = IdleClock(multiple=10), time.monotonic()
    first = slow.read()
    time.sleep(0.2)
    assert 0 < slow.read() - first <= (time.monotonic() - began) / 10


def test_limits_are_scaled_by_whole_multiples_and_never_shortened() -> None:
    assert scale_timeout(300) >= 300
    assert scale_timeout(300) % 300 == 0
