"""Each disk that was ever met has one reading a round, or sleeps, for any behaviour of the disks in each round."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.reading import Unreadable
from tests.collector.disks.conftest import Host, by_device
from tests.collector.fake_smartctl import Disk, FakeSmartctl, How

QUICK: tuple[How, ...] = ("answer", "answer", "asleep", "gone", "garbage", "vanish", "mute")
DISKS = [
    Disk(f"/dev/sd{letter}", sample="ata-040", serial=f"S-{letter}", wwn=ord(letter)) for letter in "abcde"
]
PLANS = st.lists(st.tuples(*(st.sampled_from(QUICK) for _ in DISKS), st.booleans()), min_size=1, max_size=4)


@pytest.mark.slow
@settings(max_examples=10)
@given(plan=PLANS)
def test_no_disk_that_was_ever_met_is_lost_and_none_is_told_twice(
    tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[How | bool, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("host")
    host = Host(folder, FakeSmartctl(folder / "fake", DISKS))
    watch, met, since = host.watch(), set[str](), dict[str, datetime]()
    for *hows, restart in plan:
        if restart:
            watch = host.watch()
        disks = [replace(disk, how=how) for disk, how in zip(DISKS, hows, strict=True)]
        host.smartctl.plug(*disks)
        readings = by_device(watch)
        asleep = {spot.path for spot in watch.asleep}
        for disk in disks:
            name = f"ST2000DM006-2DM164_{disk.serial}"
            reading = readings.pop(name, None)
            if disk.how == "answer":
                assert reading is not None
                assert not isinstance(reading.seen, Unreadable)
                met.add(name)
                since.pop(name, None)
            elif disk.how == "asleep":
                assert reading is None
                assert disk.path in asleep
            elif name in met:
                assert reading is not None
                assert isinstance(reading.seen, Unreadable)
                assert reading.seen.since == since.setdefault(name, reading.seen.since)
            else:
                assert reading is None
                assert any(said.startswith(f"{disk.path} ") for said in watch.nameless)
        assert readings == {}
