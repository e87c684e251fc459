"""The live cluster of the settings, found as Ceph's own tools find it, with everything that a controller needs of
it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from sys import executable
from typing import TYPE_CHECKING

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.cluster_port import Cluster, ConfigKeyStore, Lease
from predrain.data.clock import SystemClock
from predrain.data.store.store_port import Store
from predrain.service.runtime.process_identity import has_ended, name_this_process, read_boot_clock

if TYPE_CHECKING:
    from predrain.service.config.settings import CephTable

ETC = Path("/etc/ceph")
"""The last directory in which Ceph's own tools search."""


@dataclass(frozen=True, slots=True)
class LiveClusterParts:
    """A cluster and what its controllers keep in it.

    owner: a name that only this process has. plans_only: the process has no signing key, so it neither leads nor
    forwards requests to the leader.
    """

    cluster: Cluster
    keep: ConfigKeyStore | None = None
    lease: Lease | None = None
    owner: str = ""
    channel: CommandChannel | None = None
    plans_only: bool = False

    def close(self) -> None:
        """Release the lease and close the connection."""
        if self.lease is not None:
            self.lease.release()
        if self.channel is not None:
            self.channel.close()


def conf_of(ceph: CephTable, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the configuration file: of the settings, else `CEPH_CONF`, else `/etc/ceph/NAME.conf` if it exists,
    else None.
    """
    if ceph.conf is not None:
        return ceph.conf
    if given := environment.get("CEPH_CONF"):
        return Path(given)
    usual = ETC / f"{ceph.cluster_name}.conf"
    return usual if usual.exists() else None


def channel_to(ceph: CephTable) -> CommandChannel | None:
    """Return a channel to the cluster of the settings, not yet connected; None if no cluster is configured."""
    conf = conf_of(ceph)
    if conf is None:
        return None
    from predrain.actions.cluster.rados_connection import Connection, Rados

    here = (executable,) if find_spec("rados") else ("/usr/bin/python3",)
    connection = Connection(
        conf=str(conf),
        name=ceph.name,
        keyring=str(ceph.keyring or ""),
        cluster_name=ceph.cluster_name,
        interpreter=ceph.python or here,
    )
    return Rados(connection, seconds=ceph.timeout_seconds)


def open_recorded_cluster(path: Path) -> LiveClusterParts:
    """Open a recorded cluster, which accepts no command. Raises UnreadableRecording."""
    from predrain.actions.cluster.recorded_cluster import RecordedCluster, read_recording

    return LiveClusterParts(RecordedCluster(read_recording(path)))


def make_live_cluster(
    ceph: CephTable, store: Store, signing_key: Callable[[], str | None]
) -> LiveClusterParts | None:
    """Return the cluster of the settings with its config_key store and lease, or None if no cluster is
    configured.

    The cluster is not contacted. Raises NoMgrExecutorKey, and what `signing_key` raises.

    store: its running drains are observed closely, and its latencies serve as the signal of their OSDs.
    signing_key: returns the key that signs the values in the config_key store; without a key the process only
    plans. It is called only if there is a cluster.
    """
    channel = channel_to(ceph)
    if channel is None:
        return None
    from predrain.actions.cluster.config_key_store import ConfigKeys
    from predrain.actions.cluster.latency_observer import LatencyObserver
    from predrain.actions.cluster.live_ceph import LiveCluster
    from predrain.actions.cluster.signed_keys import SignedKeys
    from predrain.actions.core.in_flight import list_watched_osds
    from predrain.service.drains.view_only_cluster import PlanOnlyLease

    owner = name_this_process()
    senses = LatencyObserver(
        channel, ceph.pool, lambda: list_watched_osds(store.drains()), store.read_latency_summaries
    )
    cluster = LiveCluster(channel, SystemClock().now, senses=senses)
    if ceph.executor_key is not None:
        from predrain.service.drains.mgr_executor import MgrExecutor, delegate_steps

        found = LiveClusterParts(cluster, owner=owner, channel=channel)
        return delegate_steps(
            found, MgrExecutor.with_key_of(ceph.executor_key, SystemClock()), store, SystemClock()
        )
    key = signing_key()
    keep = SignedKeys(ConfigKeys(channel), key)
    if key is None:
        return LiveClusterParts(
            cluster, keep, PlanOnlyLease(lease_on(channel, ceph, owner)), owner, channel, plans_only=True
        )
    return LiveClusterParts(cluster, keep, lease_on(channel, ceph, owner), owner, channel)


def lease_on(channel: CommandChannel, ceph: CephTable, owner: str) -> Lease:
    """Return the lease that the controllers of this cluster share, for `owner`."""
    from predrain.actions.cluster.lease import RadosLease

    return RadosLease(channel, owner, read_boot_clock, ceph.pool, ceph.lease_seconds, has_ended)
