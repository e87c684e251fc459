"""Names of hosts as different programs know them, and whose word about an OSD counts. Pure functions."""

from __future__ import annotations

from collections.abc import Collection

from predrain.data.ids import HostName


def is_same_host(one: HostName, other: HostName) -> bool:
    """Whether two names are of one host: Ceph may know it by its short name, the collector by its full one."""
    if "." in one and "." in other:
        return one == other
    return one.partition(".")[0] == other.partition(".")[0]


def choose_tellers(
    machine: HostName | None, machines: Collection[HostName], tellers: Collection[HostName]
) -> frozenset[HostName]:
    """The hosts of `tellers` whose latencies of an OSD count.

    machine: where the OSD runs, as the OSD itself tells; None: not known, so that every host counts. machines: where
    any OSD of the cluster runs. The OSD's own machine counts. Where that one tells nothing, hosts that no OSD runs on
    count: their collectors are set to names of their own. A machine of other OSDs never counts.
    """
    if machine is None:
        return frozenset(tellers)
    own = frozenset(host for host in tellers if is_same_host(host, machine))
    return own or frozenset(
        host for host in tellers if not any(is_same_host(host, other) for other in machines)
    )
