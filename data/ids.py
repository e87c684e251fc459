"""What things are called: devices by Ceph's device id, OSDs by number, hosts by name."""

from __future__ import annotations

from typing import NewType

DeviceId = NewType("DeviceId", str)
"""Ceph's `VENDOR_MODEL_SERIAL`; a device keeps it wherever it is plugged in."""

HostName = NewType("HostName", str)
OsdId = NewType("OsdId", int)
PgId = NewType("PgId", str)
"""`POOL.SEED`, the seed in hex, as Ceph prints it: `3.1f`."""
