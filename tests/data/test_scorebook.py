"""The scorebook keeps one line a bundle, disk and day, apart from the outlooks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from predrain.data.ids import DeviceId
from predrain.data.outlook import Status
from predrain.data.scorebook import Scorebook, ScorebookLine, ScorebookUnusable


def line(device: str, day: int, p: float = 0.1, status: Status = Status.GOOD) -> ScorebookLine:
    return ScorebookLine(DeviceId(device), day, "M", status, p / 4, p / 2, p)


@pytest.fixture
def book(tmp_path: Path) -> Scorebook:
    return Scorebook(tmp_path / "scorebook.sqlite")


def test_lines_come_back_by_disk_and_day_and_the_last_of_a_day_stays(book: Scorebook) -> None:
    book.write("one", [line("B", 5), line("A", 7), line("A", 6, 0.2), line("A", 6, 0.4, Status.BAD)])
    book.write("two", [line("A", 6, 0.9)])
    found = book.read("one")
    assert found.device.tolist() == ["A", "A", "B"]
    assert found.day.tolist() == [6, 7, 5]
    assert found.status.tolist() == [Status.BAD, Status.GOOD, Status.GOOD]
    assert np.allclose(found.p[0], [0.1, 0.2, 0.4])
    assert len(book.read("two")) == 1
    assert len(book.read("three")) == 0
    book.close()


def test_a_book_is_read_from_a_day_on_and_pruned_before_one(book: Scorebook) -> None:
    book.write("one", [line("A", day) for day in range(10)])
    assert book.read("one", since=8).day.tolist() == [8, 9]
    assert book.prune(7) == 7
    assert book.read("one").day.tolist() == [7, 8, 9]
    book.close()


def test_a_written_line_can_be_read_by_another_process_and_after_a_restart(tmp_path: Path) -> None:
    first, second = Scorebook(tmp_path / "s"), Scorebook(tmp_path / "s")
    first.write("one", [line("A", 1)])
    assert len(second.read("one")) == 1
    first.close()
    second.close()
    third = Scorebook(tmp_path / "s")
    assert len(third.read("one")) == 1
    third.close()


def test_a_file_that_is_no_scorebook_is_refused_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("no database, but long enough to be taken for one " * 100)
    with pytest.raises(ScorebookUnusable, match="move it away"):
        Scorebook(tmp_path / "s")
