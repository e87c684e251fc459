"""The cluster port: one method to read the cluster and one to change it. Every command names its target value, never a
difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.lease_owner import LeaseOwner
from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.data.refusal import Refusal

Servers = tuple[tuple[PgId, tuple[int, ...]], ...]
"""PGs, each with the members that go on serving it while new ones are filled."""


@dataclass(frozen=True, slots=True)
class SetUpmap:
    """`osd pg-upmap-items`: replaces the PG's whole list of (from, to) pairs.

    `acting`: the OSDs that go on serving while the new member is filled, which is the PG's present acting set. `osd
    pg-temp` with this set is sent together with the upmap items, so that both land in one map. The PG then peers once
    for this, not twice, and keeps its primary. The PG's primary requests the end of the pg-temp once the new member is
    filled, and the mon drops it where it equals `up`. If `acting` is empty, the primary has to request a pg-temp
    itself.
    """

    pg: PgId
    pairs: tuple[tuple[int, int], ...]
    acting: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoveUpmap:
    """`osd rm-pg-upmap-items`. `acting` is as in SetUpmap."""

    pg: PgId
    acting: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Reweight:
    """`osd reweight`: the override, in [0, 1]. `acting`: for each PG that moves, the OSDs that go on serving (see
    SetUpmap).
    """

    osd: OsdId
    weight: float
    acting: Servers = ()


@dataclass(frozen=True, slots=True)
class CrushReweight:
    """`osd crush reweight`, in TiB as CRUSH counts. `acting` is as in Reweight."""

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
    """`balancer on` or `balancer off`. None removes the config row if there was none before; the balancer
    is then on.
    """

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
    """`device light on` or `off`: the locating light beside the disk, which the orchestrator switches."""

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


class ConfigKeyStore(Protocol):
    """Small texts stored in the cluster itself (`config-key`, under `predrain/`), by names such as `halt` or
    `drain/osd.7`.

    A text may have any length: the adapter splits one that is longer than Ceph's 64 KiB per key. Each method raises
    ClusterUnreachable.
    """

    def read(self, name: str) -> str | None:
        """Return the text, or None if there is none."""
        ...

    def names(self, under: str = "") -> tuple[str, ...]:
        """Return all names that begin with `under` and hold a text, sorted."""
        ...

    def write(self, name: str, text: str) -> None:
        """Replace the whole text: a reader sees the old one or the new one."""
        ...

    def remove(self, name: str) -> None:
        """Remove the text. Do nothing if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """The process that holds the lease, and its expiry without renewal by the cluster's clock (None: never)."""

    owner: LeaseOwner
    until: datetime | None


class Lease(Protocol):
    """The right to act, which one controller at a time holds."""

    @property
    def why(self) -> str:
        """Return why the lease is not held, as a sentence; empty while it is held."""
        ...

    @property
    def taken(self) -> bool:
        """Return whether another controller held the lease when this one last asked for it."""
        ...

    def hold(self) -> bool:
        """Take or renew the lease. Return whether it is held now; false also if the cluster does not answer."""
        ...

    def is_held(self) -> bool:
        """Return whether the lease is still held by our own monotonic deadline, which lies before the lock's. Send no
        command.
        """
        ...

    def release(self) -> None:
        """Release the lease, so that another controller can take it at once."""
        ...

    def find_holder(self) -> LeaseHolder | None:
        """Ask the cluster which process holds the lease; None if there is none. Raises ClusterUnreachable."""
        ...


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The cluster's answer. `ok` is its claim: the mon answers ok for some upmap items that it drops, so read them
    back.
    """

    ok: bool
    text: str
    epoch: int | None = None
    """The map epoch after the command, if the cluster reported it."""


class ClusterUnreachable(Exception):
    """There was no answer within the deadline. Whether the command was executed is unknown."""


class ClusterNotReadYet(Refusal):
    """A person asks for something that depends on the state of the cluster, which has not answered."""


class DamagedConfigKey(ClusterUnreachable):
    """A text in the cluster whose pieces do not belong together, because some of them were removed or changed."""


class Cluster(Protocol):
    """A Ceph cluster, real or simulated."""

    def view(self) -> ClusterView:
        """Read the cluster. Raises ClusterUnreachable."""
        ...

    def apply(self, command: Command) -> CommandResult:
        """Send one command. Raises ClusterUnreachable."""
        ...
