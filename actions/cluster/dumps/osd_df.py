"""`ceph osd df`: the size and the usage of each OSD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from predrain.actions.cluster.dumps.dump_decoding import decode_answer, require_in_range
from predrain.data.ids import OsdId

_NAME = "osd_df"
_KIB = 1024
_LARGEST_KIB = 1 << 50


class _Node(msgspec.Struct, gc=False):
    id: int
    kb: int | None = None
    kb_used: int | None = None


class _Dump(msgspec.Struct):
    nodes: list[_Node]
    stray: list[_Node] = []


_DECODER = msgspec.json.Decoder(_Dump)


@dataclass(frozen=True, slots=True)
class OsdUsage:
    """Size and usage of one OSD in B."""

    size: int
    used: int


def osd_df(raw: bytes) -> Mapping[OsdId, OsdUsage]:
    """Return the usage of every OSD that reports one. Ceph prints 0 kb for an OSD that does not. Raises
    NotUnderstood.
    """
    dump = decode_answer(_NAME, raw, _DECODER)
    fills: dict[OsdId, OsdUsage] = {}
    for node in (*dump.nodes, *dump.stray):
        if node.id >= 0 and node.kb and node.kb_used is not None:
            require_in_range(_NAME, f"kb of osd.{node.id}", node.kb, 1, _LARGEST_KIB)
            require_in_range(_NAME, f"kb_used of osd.{node.id}", node.kb_used, 0, _LARGEST_KIB)
            fills[OsdId(node.id)] = OsdUsage(node.kb * _KIB, node.kb_used * _KIB)
    return fills
