"""Identifiers: clusters by fsid, devices by Ceph's device id, OSDs by cluster and number, hosts by name."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple, NewType

ClusterId = NewType("ClusterId", str)
"""The fsid of a cluster: a UUID as Ceph prints it, in lower case."""

DeviceId = NewType("DeviceId", str)
"""Ceph's `VENDOR_MODEL_SERIAL`; a device keeps it in every slot."""

HostName = NewType("HostName", str)
OsdId = NewType("OsdId", int)
"""The number of an OSD within its cluster. Every cluster has an osd.3, so the number alone is no key where two clusters
may meet (`OsdKey`)."""
PgId = NewType("PgId", str)
"""`POOL.SEED`, the seed in hex, as Ceph prints it: `3.1f`."""


FSID_PATTERN = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FSID = re.compile(FSID_PATTERN)


class OsdKey(NamedTuple):
    """An OSD among those of all clusters."""

    cluster: ClusterId | None
    """None if the source of the number does not know the cluster."""
    osd: OsdId

    def could_be(self, other: OsdKey) -> bool:
        """Return whether both may be one OSD: they have one number, and no two clusters."""
        return self.osd == other.osd and (
            self.cluster == other.cluster or self.cluster is None or other.cluster is None
        )


def find_osd(key: OsdKey, known: Collection[OsdKey]) -> OsdKey | None:
    """Return the OSD of `known` that `key` means: the same key, or the only one that it could be."""
    if key in known:
        return key
    alike = [one for one in known if key.could_be(one)]
    return alike[0] if len(alike) == 1 else None


def parse_cluster_id(text: str) -> ClusterId | None:
    """Return the cluster whose fsid is `text`, in any case; None if `text` is no fsid."""
    fsid = text.strip().lower()
    return ClusterId(fsid) if _FSID.fullmatch(fsid) else None


def pg_id(pool: int, seed: int) -> PgId:
    """Return the id of a pool's PG."""
    return PgId(f"{pool}.{seed:x}")


def pg_seed(pg: PgId) -> tuple[int, int]:
    """Return (pool, seed) of a PG id."""
    pool, _, seed = pg.partition(".")
    return int(pool), int(seed, 16)
