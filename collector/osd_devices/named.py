"""The disks that OSDs name themselves, at their admin sockets: where no folder tells (Rook, a folder that is not here).

An OSD lists its disks and not what it keeps on which.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from predrain.collector.latency.asking import SilentOsd, SocketRequest, ask_all
from predrain.data.ids import OsdId

LIST = b'{"prefix":"list_devices","format":"json"}'
"""Known to Pacific, Reef and Tentacle."""
SECONDS = 2.0
"""For all OSDs together."""
MOST_BYTES = 1 << 16


class _Device(msgspec.Struct):
    device: str


_DEVICES = msgspec.json.Decoder(list[_Device])


def named_disks(sockets: Mapping[OsdId, Path]) -> dict[OsdId, tuple[str, ...]]:
    """Devices by OSD (`/dev/sda`). OSDs that do not answer, or say something else, are left out."""
    questions = {osd: SocketRequest(socket, (LIST,)) for osd, socket in sockets.items()}
    found: dict[OsdId, tuple[str, ...]] = {}
    for osd, answer in ask_all(questions, seconds=SECONDS, answer_bytes=MOST_BYTES).items():
        if isinstance(answer, SilentOsd):
            continue
        try:
            found[osd] = tuple(one.device for one in _DEVICES.decode(answer[0]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    return found
