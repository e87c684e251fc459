"""The live cluster of the settings: found as Ceph's own tools find it, with all that a controller needs of it."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from sys import executable

from actions.cluster.channel import Channel
from actions.cluster.port import Cluster, Keep, Lease
from data.clock import SystemClock
from data.store.port import Store
from service.settings import CephTable

ETC = Path("/etc/ceph")
"""Where Ceph's own tools look last."""


@dataclass(frozen=True, slots=True)
class Live:
    """A cluster and what it keeps for whoever controls it. `owner`: this process, unlike any other."""

    cluster: Cluster
    keep: Keep | None = None
    lease: Lease | None = None
    owner: str = ""
    channel: Channel | None = None

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


def channel_to(ceph: CephTable) -> Channel | None:
    """A channel to the cluster of the settings, not yet connected; None where no cluster is configured."""
    conf = conf_of(ceph)
    if conf is None:
        return None
    from actions.cluster.rados import Connection, Rados

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
    from actions.cluster.recorded import RecordedCluster, read

    return Live(RecordedCluster(read(path)))


def live(ceph: CephTable, store: Store) -> Live | None:
    """The cluster of the settings with its keep and lease; None where no cluster is configured. Asks it nothing.
    Raises NoHandKey.

    store: whose drains are watched closely, and whose latencies are taken for theirs.
    """
    channel = channel_to(ceph)
    if channel is None:
        return None
    from actions.cluster.keep import ConfigKeys
    from actions.cluster.lease import RadosLease
    from actions.cluster.live import LiveCluster
    from actions.cluster.senses import Senses
    from actions.flight import watched

    owner = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    lease = RadosLease(channel, owner, _boottime, ceph.pool, ceph.lease_seconds)
    senses = Senses(channel, ceph.pool, lambda: watched(store.drains()), store.latency)
    cluster = LiveCluster(channel, SystemClock().now, senses=senses)
    found = Live(cluster, ConfigKeys(channel), lease, owner, channel)
    if ceph.hand_key is None:
        return found
    from service.draining.hand import Hand, handed

    return handed(found, Hand.with_key_of(ceph.hand_key, SystemClock()), store.drains)


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
