"""Two disks that say the same name: nothing is read twice, nothing is dropped without a word."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from predrain.data.reading import Reading
from tests.collector.disks.conftest import Host
from tests.collector.fake_smartctl import Disk, plant_wwid

Made = Callable[[Iterable[Disk]], Host]

BRIDGED = Disk("/dev/sdx", "usbjmicron", "ata-007", serial="9C40918040082")
"""A USB stick that tells no WWN, as real ones of a batch that share their serial number."""
TWIN = replace(BRIDGED, path="/dev/sdy")


@pytest.fixture
def twins(host: Made) -> Host:
    return host([BRIDGED, TWIN])


def read(made: Host) -> tuple[list[Reading], tuple[str, ...]]:
    """Two rounds: in the second one the collector knows what to expect."""
    watch = made.watch()
    list(watch.read_disks())
    return list(watch.read_disks()), watch.nameless


def test_two_disks_of_one_name_without_a_wwn_are_taken_for_one_and_that_is_told(twins: Host) -> None:
    readings, told = read(twins)
    assert len(readings) == 1
    assert len(told) == 1
    assert "neither tells a WWN: they are taken for one disk on two paths" in told[0]


def test_where_the_kernel_tells_them_apart_both_are_read_and_that_is_told(twins: Host) -> None:
    plant_wwid(twins.root, "sdx", "t10.ATA one")
    plant_wwid(twins.root, "sdy", "t10.ATA two")
    readings, told = read(twins)
    assert len(readings) == 2
    assert len(told) == 1
    assert "two disks share one name and one history" in told[0]


def test_one_disk_on_two_paths_that_the_kernel_knows_is_no_news(twins: Host) -> None:
    for path in ("sdx", "sdy"):
        plant_wwid(twins.root, path, "t10.ATA one")
    readings, told = read(twins)
    assert len(readings) == 1
    assert told == ()
