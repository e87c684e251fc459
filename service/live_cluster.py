"""The live cluster of the settings: found as Ceph's own tools find it, with all that a controller needs of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from sys import executable

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.port import Cluster, Keep, Lease
from predrain.data.clock import SystemClock
from predrain.data.store.port import Store
from predrain.service.process_identity import has_ended, name_this_process
from predrain.service.settings import CephTable

ETC = Path("/etc/ceph")
"""Where Ceph's own tools look last."""


@dataclass(frozen=True, slots=True)
class Live:
    """A cluster and what it keeps for whoever controls it. `owner`: this process, unlike any other. `plans_only`: it
    has no key to sign with, so it neither leads nor asks the one that does.
    """

    cluster: Cluster
    keep: Keep | None = None
    lease: Lease | None = None
    owner: str = ""
    channel: CommandChannel | None = None
    plans_only: bool = False

    def close(self) -> None:
        """Give the lease back and let the connection go."""
        if self.lease is not None:
            self.lease.release()
        if self.channel is not None:
            self.channel.close()


def conf_of(ceph: CephTable, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The configuration file: of the settings, else `CEPH_CONF`, else `/etc/ceph/NAME.conf` where it is; else None."""
    if ceph.conf is not None:
        return ceph.conf
    if given := environment.get("CEPH_CONF"):
        return Path(given)
    usual = ETC / f"{ceph.cluster_name}.conf"
    return usual if usual.exists() else None


def channel_to(ceph: CephTable) -> CommandChannel | None:
    """A channel to the cluster of the settings, not yet connected; None where no cluster is configured."""
    conf = conf_of(ceph)
    if conf is None:
        return None
    from predrain.actions.cluster.rados import Connection, Rados

    here = (executable,) if find_spec("rados") else ("/usr/bin/python3",)
    connection = Connection(
        conf=str(conf),
        name=ceph.name,
        keyring=str(ceph.keyring or ""),
        cluster_name=ceph.cluster_name,
        interpreter=ceph.python or here,
    )
    return Rados(connection, seconds=ceph.timeout_seconds)


def recorded(path: Path) -> Live:
    """A recorded cluster, which takes no command. Raises UnreadableRecording."""
    from predrain.actions.cluster.recorded import RecordedCluster, read

    return Live(RecordedCluster(read(path)))


def make_live_cluster(ceph: CephTable, store: Store, signing_key: Callable[[], str | None]) -> Live | None:
    """The cluster of the settings with its keep and lease; None where no cluster is configured. Asks it nothing.
    Raises NoHandKey, and what `signing_key` raises.

    store: whose drains are watched closely, and whose latencies are taken for theirs. signing_key: gives the key that
    signs what is kept in the cluster; without one the process plans only. Asked for only where there is a cluster.
    """
    channel = channel_to(ceph)
    if channel is None:
        return None
    from predrain.actions.cluster.config_key_store import ConfigKeys
    from predrain.actions.cluster.live import LiveCluster
    from predrain.actions.cluster.senses import Senses
    from predrain.actions.cluster.signed_keys import SignedKeys
    from predrain.actions.core.in_flight import watched
    from predrain.service.drains.onlooking import PlansOnly

    owner = name_this_process()
    senses = Senses(channel, ceph.pool, lambda: watched(store.drains()), store.latency)
    cluster = LiveCluster(channel, SystemClock().now, senses=senses)
    if ceph.hand_key is not None:
        from predrain.service.drains.mgr_executor import MgrExecutor, delegate_steps

        found = Live(cluster, owner=owner, channel=channel)
        return delegate_steps(
            found, MgrExecutor.with_key_of(ceph.hand_key, SystemClock()), store, SystemClock()
        )
    key = signing_key()
    keep = SignedKeys(ConfigKeys(channel), key)
    if key is None:
        return Live(cluster, keep, PlansOnly(lease_on(channel, ceph, owner)), owner, channel, plans_only=True)
    return Live(cluster, keep, lease_on(channel, ceph, owner), owner, channel)


def lease_on(channel: CommandChannel, ceph: CephTable, owner: str) -> Lease:
    """The lease that controllers of this cluster share, as `owner` asks for it."""
    from predrain.actions.cluster.lease import RadosLease

    return RadosLease(channel, owner, _boottime, ceph.pool, ceph.lease_seconds, has_ended)


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
