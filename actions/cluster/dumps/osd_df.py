"""`ceph osd df`: what each OSD holds and could hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from predrain.actions.cluster.dumps.decoding import decoded, within
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
class Fill:
    """Bytes of one OSD."""

    size: int
    used: int


def osd_df(raw: bytes) -> Mapping[OsdId, Fill]:
    """Fill of every OSD that reports one: 0 kb is what Ceph prints of those that do not. Raises NotUnderstood."""
    dump = decoded(_NAME, raw, _DECODER)
    fills: dict[OsdId, Fill] = {}
    for node in (*dump.nodes, *dump.stray):
        if node.id >= 0 and node.kb and node.kb_used is not None:
            within(_NAME, f"kb of osd.{node.id}", node.kb, 1, _LARGEST_KIB)
            within(_NAME, f"kb_used of osd.{node.id}", node.kb_used, 0, _LARGEST_KIB)
            fills[OsdId(node.id)] = Fill(node.kb * _KIB, node.kb_used * _KIB)
    return fills
