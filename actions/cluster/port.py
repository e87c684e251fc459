"""The cluster port: one way to look, one way to act. Every command names its target value, never a delta."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from predrain.actions.cluster.lease_owner import LeaseOwner
from predrain.actions.cluster.view import ClusterView
from predrain.data.ids import DeviceId, OsdId, PgId

Servers = tuple[tuple[PgId, tuple[int, ...]], ...]
"""PGs, each with the members that go on serving it while new ones are filled."""


@dataclass(frozen=True, slots=True)
class SetUpmap:
    """`osd pg-upmap-items`: replaces the PG's whole list of (from, to) pairs.

    `acting`: who goes on serving while the new member is filled, the PG's acting set as it is. `osd pg-temp` with it
    is sent so that both land in one map; the PG then peers once for this, not twice, and keeps its primary. The mon
    drops it where it equals `up`, the PG's primary once the new member is filled. Empty: the PG's primary has to ask.
    """

    pg: PgId
    pairs: tuple[tuple[int, int], ...]
    acting: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoveUpmap:
    """`osd rm-pg-upmap-items`; `acting` as in SetUpmap."""

    pg: PgId
    acting: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Reweight:
    """`osd reweight`: the override, in [0, 1]. `acting`: for PGs that it moves, who serves on, as in SetUpmap."""

    osd: OsdId
    weight: float
    acting: Servers = ()


@dataclass(frozen=True, slots=True)
class CrushReweight:
    """`osd crush reweight`, in TiB as CRUSH counts. `acting` as in Reweight."""

    osd: OsdId
    weight: float
    acting: Servers = ()


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
    """`config set SECTION NAME VALUE`; None is `config rm`."""

    name: str
    value: str | None
    section: str = "osd"


@dataclass(frozen=True, slots=True)
class Balancer:
    """`balancer on` or `balancer off`; None takes the mon's row for it away, where there was none: it is on then."""

    on: bool | None


@dataclass(frozen=True, slots=True)
class PublishLife:
    """`device set-life-expectancy`: days in UTC, from midnight to midnight."""

    device: DeviceId
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class WithdrawLife:
    """`device rm-life-expectancy`."""

    device: DeviceId


@dataclass(frozen=True, slots=True)
class DeviceLight:
    """`device light on` or `off`: the locating light beside the disk, by the orchestrator."""

    device: DeviceId
    on: bool


Command = (
    SetUpmap
    | RemoveUpmap
    | Reweight
    | CrushReweight
    | PrimaryAffinity
    | SetFlag
    | SetOption
    | Balancer
    | PublishLife
    | WithdrawLife
    | DeviceLight
)


class Keep(Protocol):
    """Small texts kept in the cluster itself (`config-key`, under `predrain/`), by names such as `halt` or
    `drain/osd.7`. Any length: the adapter cuts what passes Ceph's 64 KiB a key. Each raises ClusterUnreachable."""

    def read(self, name: str) -> str | None:
        """The text, or None when there is none."""
        ...

    def names(self, under: str = "") -> tuple[str, ...]:
        """All names that begin with `under` and hold a text, sorted."""
        ...

    def write(self, name: str, text: str) -> None:
        """Replace the text, whole: a reader sees the old one or the new one."""
        ...

    def remove(self, name: str) -> None:
        """Forget it; nothing when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """The process that holds the lease, and until when without renewal (None: for ever), by the cluster's clock."""

    owner: LeaseOwner
    until: datetime | None


class Lease(Protocol):
    """Who may act: one controller at a time."""

    @property
    def why(self) -> str:
        """Why it is not held, as a sentence; empty while it is."""
        ...

    @property
    def taken(self) -> bool:
        """Whether another controller had it when it was last asked for."""
        ...

    def hold(self) -> bool:
        """Take or renew it; whether it is held for now. False also when the cluster does not answer."""
        ...

    def held(self) -> bool:
        """Whether it is still held by our own monotonic deadline, which lies before the lock's. Asks nobody."""
        ...

    def release(self) -> None:
        """Let the next one have it at once."""
        ...

    def find_holder(self) -> LeaseHolder | None:
        """Who holds it, by the cluster; None when nobody does. Asks the cluster. Raises ClusterUnreachable."""
        ...


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What the cluster said. `ok` is what it claims; the mon says so of some pins that it drops: read back."""

    ok: bool
    text: str
    epoch: int | None = None
    """Map epoch after the command, where the cluster told it."""


class ClusterUnreachable(Exception):
    """No answer within the deadline; whether the command was carried out is not known."""


class Damaged(ClusterUnreachable):
    """A text in the cluster whose pieces do not belong together; somebody removed or changed some of them."""


class Cluster(Protocol):
    """A Ceph cluster, real or simulated."""

    def view(self) -> ClusterView:
        """Look. Raises ClusterUnreachable."""
        ...

    def apply(self, command: Command) -> CommandResult:
        """Send one command. Raises ClusterUnreachable."""
        ...
