"""The kernel's counters of a disk (waiting time, operations, queue), also when they wrap or a disk goes and comes."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from predrain.collector.latency.diskstats import DiskUse, disk_use

KERNEL_6 = """\
   8       0 sda 1200 3 96000 4000 500 20 64000 6000 0 3000 10000 0 0 0 0 5 40
 259       0 nvme0n1 10 0 80 1 20 0 160 2 0 3 3 0 0 0 0 0 0
"""
KERNEL_4 = "   8      16 sdb 7 0 56 9 3 0 24 1 0 8 10\n"


def test_counters_of_old_and_new_kernels_are_read(tmp_path: Path) -> None:
    (tmp_path / "diskstats").write_text(KERNEL_6 + KERNEL_4)
    assert disk_use(tmp_path / "diskstats") == {
        "sda": DiskUse(1700, 10_000, 10_000),
        "nvme0n1": DiskUse(30, 3, 3),
        "sdb": DiskUse(10, 10, 10),
    }


def test_lines_that_are_not_understood_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "diskstats").write_bytes(
        b"8 1 sda1 1 2 3 4\n\xff\xfe\n8 0 sdc a b c d e f g h i j k\n" + KERNEL_4.encode()
    )
    assert set(disk_use(tmp_path / "diskstats")) == {"sdb"}


def test_a_file_that_is_not_there_tells_of_no_disk(tmp_path: Path) -> None:
    assert disk_use(tmp_path / "diskstats") == {}


COUNTS = st.integers(0, 1 << 40)
SHORT = st.integers(0, (1 << 32) - 1)


@given(COUNTS, COUNTS, SHORT, SHORT, SHORT, SHORT)
def test_milliseconds_that_wrapped_are_still_the_time_that_passed(
    operations: int, more: int, waited: int, waits: int, queued: int, queues: int
) -> None:
    wrap = 1 << 32
    after = DiskUse(operations + more, (waited + waits) % wrap, (queued + queues) % wrap)
    assert after.since(DiskUse(operations, waited, queued)) == DiskUse(more, waits, queues)


def test_a_disk_that_was_plugged_in_anew_has_no_past() -> None:
    assert DiskUse(5, 10, 10).since(DiskUse(6, 3, 3)) is None
