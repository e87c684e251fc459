"""Host names as different programs write them, and the choice of the hosts whose reports of an OSD count.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection

from predrain.data.ids import HostName


def is_same_host(one: HostName, other: HostName) -> bool:
    """Return whether two names are of one host: Ceph may know its short name and the collector its full one."""
    if "." in one and "." in other:
        return one == other
    return one.partition(".")[0] == other.partition(".")[0]


def choose_tellers(
    machine: HostName | None, machines: Collection[HostName], tellers: Collection[HostName]
) -> frozenset[HostName]:
    """Return the hosts of `tellers` whose latencies of an OSD count.

    `machine` is the host on which the OSD runs, as the OSD itself reports; None: unknown, so that every host counts.
    `machines` are the hosts on which any OSD of the cluster runs. The OSD's own machine counts. If that machine
    reports nothing, hosts without any OSD count: their collectors are configured with other names. A machine of other
    OSDs never counts.
    """
    if machine is None:
        return frozenset(tellers)
    own = frozenset(host for host in tellers if is_same_host(host, machine))
    return own or frozenset(
        host for host in tellers if not any(is_same_host(host, other) for other in machines)
    )
