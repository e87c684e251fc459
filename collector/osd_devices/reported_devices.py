"""The disks that OSDs report at their admin sockets, for OSDs without a readable folder (Rook, or a folder
elsewhere).

An OSD lists its disks, but not which data each disk holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from predrain.collector.latency.admin_sockets import SilentOsd, SocketRequest, ask_all
from predrain.collector.latency.perf_counters import STATUS, parse_cluster
from predrain.data.ids import OsdKey

LIST = b'{"prefix":"list_devices","format":"json"}'
"""A command that Pacific, Reef and Tentacle have."""
SECONDS = 2.0
"""Time limit for all OSDs together, in seconds."""
MOST_BYTES = 1 << 16


class _Device(msgspec.Struct):
    device: str


_DEVICES = msgspec.json.Decoder(list[_Device])


def named_disks(sockets: Mapping[Path, OsdKey]) -> dict[OsdKey, tuple[str, ...]]:
    """Return the devices (`/dev/sda`) by OSD. OSDs that do not answer, or give another answer, are left out.

    An OSD names its cluster itself; without that the cluster is the one that `sockets` gives.
    """
    questions = {socket: SocketRequest(socket, (LIST, STATUS)) for socket in sockets}
    found: dict[OsdKey, tuple[str, ...]] = {}
    for socket, answer in ask_all(questions, seconds=SECONDS, answer_bytes=MOST_BYTES).items():
        if isinstance(answer, SilentOsd):
            continue
        cluster, osd = sockets[socket]
        try:
            devices = tuple(one.device for one in _DEVICES.decode(answer[0]))
            found[OsdKey(parse_cluster(answer[1]) or cluster, osd)] = devices
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    return found
