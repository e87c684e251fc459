"""What things are called: devices by Ceph's device id, OSDs by number, hosts by name."""

from __future__ import annotations

from typing import NewType

DeviceId = NewType("DeviceId", str)
"""Ceph's `VENDOR_MODEL_SERIAL`; a device keeps it wherever it is plugged in."""

HostName = NewType("HostName", str)
OsdId = NewType("OsdId", int)
PgId = NewType("PgId", str)
"""`POOL.SEED`, the seed in hex, as Ceph prints it: `3.1f`."""


def pg_id(pool: int, seed: int) -> PgId:
    """The id of a pool's PG."""
    return PgId(f"{pool}.{seed:x}")


def pg_seed(pg: PgId) -> tuple[int, int]:
    """(pool, seed) of a PG id."""
    pool, _, seed = pg.partition(".")
    return int(pool), int(seed, 16)
