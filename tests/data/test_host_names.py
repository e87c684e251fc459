"""Whose word about an OSD's latencies counts, where hosts are known by several names."""

from __future__ import annotations

import pytest

from predrain.data.host_names import choose_tellers, is_same_host
from predrain.data.ids import HostName

MACHINES = [HostName("stor-01"), HostName("stor-02"), HostName("stor-03")]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("stor-01", "stor-01", True),
        ("stor-01", "stor-01.example.org", True),
        ("stor-01.example.org", "stor-01.example.com", False),
        ("stor-01", "stor-011", False),
    ],
)
def test_a_short_and_a_full_name_may_be_of_one_host(one: str, other: str, *, same: bool) -> None:
    assert is_same_host(HostName(one), HostName(other)) is same


@pytest.mark.parametrize(
    ("machine", "tellers", "counted"),
    [
        ("stor-01", ["stor-01", "stor-02"], ["stor-01"]),
        ("stor-01", ["stor-01.example.org", "stor-02"], ["stor-01.example.org"]),
        ("stor-01", ["stor-02", "stor-03.example.org"], []),
        ("stor-01", ["rack7-node1"], ["rack7-node1"]),
        ("stor-01", ["stor-01", "rack7-node1"], ["stor-01"]),
        (None, ["stor-02", "rack7-node1"], ["stor-02", "rack7-node1"]),
    ],
    ids=[
        "the machine alone",
        "by its full name",
        "no other machine",
        "a collector with a name of its own",
        "and none beside the machine",
        "every host where the machine is not known",
    ],
)
def test_the_machine_of_an_osd_tells_of_it(
    machine: str | None, tellers: list[str], counted: list[str]
) -> None:
    of = HostName(machine) if machine is not None else None
    assert choose_tellers(of, MACHINES, [HostName(one) for one in tellers]) == set(counted)
