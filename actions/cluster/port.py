"""The cluster port: one way to look, one way to act. Every command names its target value, never a delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from actions.cluster.view import ClusterView
from data.ids import OsdId, PgId


@dataclass(frozen=True, slots=True)
class SetUpmap:
    """`osd pg-upmap-items`: replaces the PG's whole list of (from, to) pairs."""

    pg: PgId
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RemoveUpmap:
    """`osd rm-pg-upmap-items`."""

    pg: PgId


@dataclass(frozen=True, slots=True)
class Reweight:
    """`osd reweight`: the override, in [0, 1]."""

    osd: OsdId
    weight: float


@dataclass(frozen=True, slots=True)
class CrushReweight:
    """`osd crush reweight`, in TiB as CRUSH counts."""

    osd: OsdId
    weight: float


@dataclass(frozen=True, slots=True)
class PrimaryAffinity:
    """`osd primary-affinity`, in [0, 1]."""

    osd: OsdId
    affinity: float


@dataclass(frozen=True, slots=True)
class SetFlag:
    """`osd set FLAG` or `osd unset FLAG`."""

    flag: str
    on: bool


@dataclass(frozen=True, slots=True)
class SetOption:
    """`config set osd NAME VALUE`; None is `config rm`."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Balancer:
    """`balancer on` or `balancer off`."""

    on: bool


Command = SetUpmap | RemoveUpmap | Reweight | CrushReweight | PrimaryAffinity | SetFlag | SetOption | Balancer


@dataclass(frozen=True, slots=True)
class Answer:
    """What the cluster said. `ok` is what it claims; the mon says so of some pins that it drops: read back."""

    ok: bool
    text: str
    epoch: int | None = None
    """Map epoch after the command, where the cluster told it."""


class ClusterUnreachable(Exception):
    """No answer within the deadline; whether the command was carried out is not known."""


class Cluster(Protocol):
    """A Ceph cluster, real or simulated."""

    def view(self) -> ClusterView:
        """Look. Raises ClusterUnreachable."""
        ...

    def apply(self, command: Command) -> Answer:
        """Send one command. Raises ClusterUnreachable."""
        ...
