"""Disks that are too hot: a fan, a rack's cooling or a room's is one cause each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.simulator import SimulatedCluster
from predrain.data.ids import HostName
from predrain.data.reading import Reading, Smart
from predrain.service.notifications.cause import AlertCause, AlertSnapshot, Severity
from predrain.service.notifications.heat_causes import HOT_C, hot_disks
from tests.actions.made import wide_spec
from tests.service.notifications.snapshots import NOW, Fleet, device


def heated(celsius: Mapping[int, int | None], *, rpm: int | None = 5900, racks: int = 0) -> AlertSnapshot:
    """Forty disks on four hosts, stor-01 to stor-04, at 31 degrees but for those that are said."""
    snapshot = Fleet().snapshot()

    def at(number: int, reading: Reading) -> Reading:
        assert isinstance(reading.seen, Smart)
        seen = replace(
            reading.seen,
            temperature_c=celsius.get(number, 31),
            identity=replace(reading.seen.identity, rotation_rpm=rpm),
        )
        return replace(reading, host=HostName(f"stor-{number // 10 + 1:02d}"), seen=seen)

    readings = {name: at(number, one) for number, (name, one) in enumerate(snapshot.fleet.readings.items())}
    view = SimulatedCluster(wide_spec(hosts=4, per_host=1, racks=racks), 1).view() if racks else None
    return replace(snapshot, fleet=replace(snapshot.fleet, readings=readings, view=view))


def told(snapshot: AlertSnapshot) -> list[tuple[str, str, Severity]]:
    return [(cause.key, cause.title, cause.severity) for cause in hot_disks(snapshot)]


def test_a_host_whose_disks_are_hot_is_a_notice() -> None:
    snapshot = heated({0: 57, 1: 61, 2: 55})
    assert told(snapshot) == [("hot:stor-01", "3 disks on stor-01 are too hot", Severity.NOTICE)]
    (cause,) = hot_disks(snapshot)
    assert cause.points[0].line == f"{device(1)} on stor-01: 61 °C."


def test_two_hot_disks_are_their_own_affair() -> None:
    assert told(heated({0: 70, 1: 70})) == []


def test_a_rack_is_one_urgent_cause() -> None:
    snapshot = heated(dict.fromkeys(range(20), 60), racks=2)
    rack = snapshot.fleet.racks_of_hosts()[HostName("stor-01")]
    title = f"20 disks on 2 hosts of rack {rack} are too hot"
    assert told(snapshot) == [(f"hot:rack:{rack}", title, Severity.URGENT)]


def test_several_racks_are_one_cause() -> None:
    assert told(heated(dict.fromkeys(range(40), 60), racks=2)) == [
        ("hot", "40 disks on 4 hosts in 2 racks are too hot", Severity.URGENT)
    ]


def test_flash_and_what_is_not_told_and_what_is_old_is_not_judged() -> None:
    hot = dict.fromkeys(range(10), 75)
    assert told(heated(hot, rpm=0)) == told(heated(hot, rpm=None)) == []
    assert told(heated(dict.fromkeys(range(10)))) == []
    snapshot = heated(hot)
    assert told(replace(snapshot, now=NOW + 3 * snapshot.stale_after)) == []


@pytest.mark.slow
@given(st.dictionaries(st.integers(0, 39), st.integers(20, 80)), st.sampled_from([0, 1, 2, 4]))
def test_a_disk_is_in_one_cause_at_the_most_and_is_hot(celsius: dict[int, int], racks: int) -> None:
    found: list[AlertCause] = list(hot_disks(heated(celsius, racks=racks)))
    named = [point.name for cause in found for point in cause.points]
    hot = {f"hot:{device(number)}" for number, degrees in celsius.items() if degrees >= HOT_C}
    assert len(named) == len(set(named))
    assert set(named) <= hot
