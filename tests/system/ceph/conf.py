"""The configuration that a cluster is made from before it runs: ceph.conf, keys and keyrings."""

from __future__ import annotations

import base64
import secrets
import struct
import time

CONF = """[global]
fsid = {fsid}
mon_host = [v2:127.0.0.1:{port},v1:127.0.0.1:{v1}]
public_addr = 127.0.0.1
keyring = {inside}/keyring.$name
admin_socket = {inside}/run/$name.asok
run_dir = {inside}/run
log_file = {inside}/log/$name.log
crash_dir = {inside}/crash
mon_data = {inside}/mon
mon_allow_pool_delete = true
mon_data_avail_warn = 1
mon_data_avail_crit = 1
mon_warn_on_insecure_global_id_reclaim_allowed = false
mon_max_pg_per_osd = 2000
mgr_data = {inside}/mgr
mgr_module_path = {inside}/modules
mgr_initial_modules = balancer
osd_data = {inside}/osd/$id
osd_objectstore = {store}
osd_op_queue = {scheduler}
osd_crush_chooseleaf_type = 1
osd_pool_default_pg_autoscale_mode = off
osd_memory_target = 939524096
bluestore_cache_autotune = false
bluestore_cache_size = 33554432
bluestore_block_size = {block}
memstore_device_bytes = {block}
{extra}
[client]
admin_socket =
log_file =
"""


def new_key(release: str) -> str:
    """A cephx secret: little-endian type, creation time, length, bytes. Tentacle wants type 2, others know only 1."""
    kind, width = (2, 32) if release == "tentacle" else (1, 16)
    head = struct.pack("<hiih", kind, int(time.time()), 0, width)
    return base64.b64encode(head + secrets.token_bytes(width)).decode()


def keyring(entity: str, key: str, caps: dict[str, str] | None = None) -> str:
    """One entry of a keyring file."""
    lines = "".join(f'caps {service} = "{granted}"\n' for service, granted in (caps or {}).items())
    return f"[{entity}]\nkey = {key}\n{lines}"
