"""The settings of a cluster that a drain may write, as typed keys for store, cluster, journal and mgr module.

Each setting has one text, by which it is stored and shown to people: `upmap/3.1f`, `osd.3/reweight`,
`option/osd_max_backfills`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from predrain.data.ids import DeviceId, OsdId, PgId


class Setting:
    """A place in the cluster's maps or configuration that holds one value. Equal settings are the same place."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class UpmapItem(Setting):
    """A PG's list of `pg-upmap-items`."""

    pg: PgId

    def __str__(self) -> str:
        return f"upmap/{self.pg}"


@dataclass(frozen=True, slots=True)
class OsdSetting(Setting):
    """A value of one OSD in the map."""

    osd: OsdId


class OsdOverride(OsdSetting):
    """An OSD's override reweight, in [0, 1]."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"osd.{self.osd}/reweight"


class OsdCrushWeight(OsdSetting):
    """An OSD's CRUSH weight, in TiB as CRUSH counts."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"osd.{self.osd}/crush_weight"


class OsdAffinity(OsdSetting):
    """An OSD's primary affinity, in [0, 1]."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"osd.{self.osd}/affinity"


@dataclass(frozen=True, slots=True)
class ConfigOption(Setting):
    """An option in a section of the mon's configuration."""

    name: str
    section: str = "osd"

    def __str__(self) -> str:
        return f"option/{self.name}" if self.section == "osd" else f"option/{self.setting_key}"

    @property
    def setting_key(self) -> str:
        """The mon's row, as `ClusterView.settings` names it: `osd/osd_max_backfills`."""
        return f"{self.section}/{self.name}"


@dataclass(frozen=True, slots=True)
class BalancerSwitch(Setting):
    """The switch of ceph-mgr's balancer, on or off."""

    def __str__(self) -> str:
        return "balancer"


@dataclass(frozen=True, slots=True)
class OsdFlag(Setting):
    """A flag of the OSD map, such as `norebalance`."""

    name: str

    def __str__(self) -> str:
        return f"flag/{self.name}"


@dataclass(frozen=True, slots=True)
class DeviceLife(Setting):
    """The life expectancy of a device, as Ceph stores it."""

    device: DeviceId

    def __str__(self) -> str:
        return f"life/{self.device}"


@dataclass(frozen=True, slots=True)
class LocatingLight(Setting):
    """The locating light beside a device."""

    device: DeviceId

    def __str__(self) -> str:
        return f"light/{self.device}"


@dataclass(frozen=True, slots=True)
class ValueBefore(Setting):
    """A key in a drain's own settings: the value before the drain's last write, kept until the map shows the write."""

    setting: Setting

    def __str__(self) -> str:
        return f"{self.setting}~"


@dataclass(frozen=True, slots=True)
class YieldedValue(Setting):
    """A key in a drain's own settings: the value that another writer gave a held setting. The value is left alone."""

    setting: Setting

    def __str__(self) -> str:
        return f"{self.setting}!"


def strip_note(key: Setting) -> Setting:
    """Return the setting inside a `ValueBefore` or `YieldedValue`; return any other setting as it is."""
    return key.setting if isinstance(key, ValueBefore | YieldedValue) else key


_OF_OSD = {"reweight": OsdOverride, "crush_weight": OsdCrushWeight, "affinity": OsdAffinity}
_PG = re.compile(r"[0-9]{1,10}\.[0-9a-f]{1,8}")
_OSD = re.compile(r"osd\.([0-9]{1,9})")


@lru_cache(maxsize=1 << 16)  # each poll reads the same few again
def read_setting(text: str) -> Setting:
    """Return the setting that has this text. Raises ValueError if none has."""
    if text.endswith("~"):
        return ValueBefore(read_setting(text[:-1]))
    if text.endswith("!"):
        return YieldedValue(read_setting(text[:-1]))
    kind, _, name = text.partition("/")
    if kind == "upmap" and _PG.fullmatch(name):
        return UpmapItem(PgId(name))
    if (found := _OSD.fullmatch(kind)) and name in _OF_OSD:
        return _OF_OSD[name](OsdId(int(found[1])))
    if text == "balancer":
        return BalancerSwitch()
    if kind == "option" and name:
        section, _, option = name.rpartition("/")
        return ConfigOption(option, section or "osd")
    if name and (named := {"flag": OsdFlag, "life": DeviceLife, "light": LocatingLight}.get(kind)):
        return named(name)  # type: ignore[arg-type]
    raise ValueError(f"{text[:60]!r} names no setting that a drain writes")
