"""How smartctl is called: by its absolute path, as an argument list, under sudo where we are not root."""

from __future__ import annotations

import re
from dataclasses import dataclass

from predrain.data.refusal import Refusal

ASLEEP = 3
"""The exit status that we ask smartctl to give for a drive in standby: no failure of its own has it."""

_PATH = re.compile(r"/dev/[\w.:+@=-]+(/[\w.:+@=-]+)*", re.ASCII)
_TYPE = re.compile(r"[a-z][\w+,/:.-]{0,63}", re.ASCII)
_SLOT = re.compile(r"(sat\+)?(megaraid|cciss|areca|3ware|aacraid|hpt|jmb39x(-q2?)?|jms56x|sssraid),\d")


class SmartctlMisnamed(Refusal):
    """The program is not named by its absolute path."""


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """Where smartctl finds a disk: a device file and the type for `-d`. Not what the disk is called."""

    path: str
    type: str = "auto"

    @property
    def hidden(self) -> bool:
        """Whether the type numbers one of several drives behind the device file (`megaraid,8`)."""
        return _SLOT.match(self.type) is not None

    @property
    def place(self) -> str:
        """The same however its type was found out: `/dev/sda`, `/dev/bus/0 megaraid,8`."""
        return f"{self.path} {self.type.removeprefix('sat+')}" if self.hidden else self.path

    @classmethod
    def at(cls, place: str) -> Spot:
        """The spot of a `place`, its type as far as that tells it."""
        path, _, kind = place.partition(" ")
        return cls(path, kind or "auto")

    @property
    def sound(self) -> bool:
        """Whether both parts may be handed to a program: no option, no way out of /dev."""
        parts = self.path.split("/")
        return bool(_PATH.fullmatch(self.path) and _TYPE.fullmatch(self.type)) and ".." not in parts


@dataclass(frozen=True, slots=True)
class Smartctl:
    """The program, and sudo when it is needed. Both by absolute path; raises SmartctlMisnamed."""

    program: str = "/usr/sbin/smartctl"
    sudo: str | None = None

    def __post_init__(self) -> None:
        for name in (self.program, self.sudo):
            if name is not None and not name.startswith("/"):
                raise SmartctlMisnamed(
                    f"{name!r} is no absolute path: name smartctl and sudo as /usr/sbin/smartctl is"
                )

    @property
    def cure(self) -> str:
        """What helps where it cannot be started at all."""
        package, key = ("smartmontools", "smartctl") if self.sudo is None else ("sudo", "sudo")
        return f"install it (apt install {package}), or give its path as `{key}` in [collector]"

    def look(self, spot: Spot) -> tuple[str, ...]:
        """All that a drive says, without waking it.

        `o`: smartctl's text comes along, which has a SAS drive's non-medium errors; JSON has not.
        """
        return self._called("-x", "--json=co", "-n", f"standby,{ASLEEP}", "-d", spot.type, spot.path)

    def ask_name(self, spot: Spot) -> tuple[str, ...]:
        """Identity only."""
        return self._called("-i", "--json=c", "-n", f"standby,{ASLEEP}", "-d", spot.type, spot.path)

    def list_opened(self) -> tuple[str, ...]:
        """List the disks, each opened to tell its type. One that hangs hangs the list."""
        return self._called("--scan-open", "--json=c")

    def list_unopened(self) -> tuple[str, ...]:
        """List the disks as the kernel shows them; touches none."""
        return self._called("--scan", "--json=c")

    def _called(self, *arguments: str) -> tuple[str, ...]:
        before = () if self.sudo is None else (self.sudo, "-n")
        return (*before, self.program, *arguments)
