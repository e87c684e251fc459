"""Builds the calls of smartctl: by its absolute path, as an argument list, with sudo if the collector is not root."""

from __future__ import annotations

import re
from dataclasses import dataclass

from predrain.data.refusal import Refusal
from predrain.data.self_test import SelfTestKind

ASLEEP = 3
"""The exit status that smartctl is asked to give for a drive in standby: none of its own failures has it."""

_PATH = re.compile(r"/dev/[\w.:+@=-]+(/[\w.:+@=-]+)*", re.ASCII)
_TYPE = re.compile(r"[a-z][\w+,/:.-]{0,63}", re.ASCII)
_SLOT = re.compile(r"(sat\+)?(megaraid|cciss|areca|3ware|aacraid|hpt|jmb39x(-q2?)?|jms56x|sssraid),\d")


class SmartctlMisnamed(Refusal):
    """The program is not named by its absolute path."""


@dataclass(frozen=True, slots=True, order=True)
class DiskPath:
    """The way in which smartctl reaches a disk: a device file and the type for `-d`. It is not the disk's name."""

    path: str
    type: str = "auto"

    @property
    def is_behind_controller(self) -> bool:
        """True if the type numbers one of several drives behind the device file (`megaraid,8`)."""
        return _SLOT.match(self.type) is not None

    @property
    def place(self) -> str:
        """The same text however the type was found: `/dev/sda`, `/dev/bus/0 megaraid,8`."""
        return f"{self.path} {self.type.removeprefix('sat+')}" if self.is_behind_controller else self.path

    @classmethod
    def from_place(cls, place: str) -> DiskPath:
        """Return the path for a `place`, with the type as far as the place gives it."""
        path, _, kind = place.partition(" ")
        return cls(path, kind or "auto")

    @property
    def is_safe(self) -> bool:
        """Return whether both parts may be passed to a program: neither is an option, and the path stays in /dev."""
        parts = self.path.split("/")
        return bool(_PATH.fullmatch(self.path) and _TYPE.fullmatch(self.type)) and ".." not in parts


@dataclass(frozen=True, slots=True)
class Smartctl:
    """The program, and sudo if it is needed, both by absolute path. Raises SmartctlMisnamed."""

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
        """The cure if the program cannot be started at all."""
        package, key = ("smartmontools", "smartctl") if self.sudo is None else ("sudo", "sudo")
        return f"install it (apt install {package}), or give its path as `{key}` in [collector]"

    def build_read_command(self, spot: DiskPath) -> tuple[str, ...]:
        """Return the command that reads all data of a drive without waking it.

        `o` in `--json=co` adds smartctl's text output, which has a SAS drive's non-medium errors; the JSON has not.
        """
        return self._called("-x", "--json=co", "-n", f"standby,{ASLEEP}", "-d", spot.type, spot.path)

    def ask_name(self, spot: DiskPath) -> tuple[str, ...]:
        """Return the command that reads only the identity."""
        return self._called("-i", "--json=c", "-n", f"standby,{ASLEEP}", "-d", spot.type, spot.path)

    def list_opened(self) -> tuple[str, ...]:
        """Return the command that opens each disk to find its type. A disk that hangs makes the whole list hang."""
        return self._called("--scan-open", "--json=c")

    def list_unopened(self) -> tuple[str, ...]:
        """Return the command that lists the disks as the kernel shows them, without touching one."""
        return self._called("--scan", "--json=c")

    def build_test_command(self, spot: DiskPath, kind: SelfTestKind) -> tuple[str, ...]:
        """Return the command that starts a self-test. The drive tests itself, and the command returns at once."""
        assert kind in (SelfTestKind.SHORT, SelfTestKind.LONG)
        return self._called("-t", kind.value, "--json=c", "-d", spot.type, spot.path)

    def build_abort_command(self, spot: DiskPath) -> tuple[str, ...]:
        """Return the command that ends the self-test of a drive."""
        return self._called("-X", "--json=c", "-d", spot.type, spot.path)

    def _called(self, *arguments: str) -> tuple[str, ...]:
        before = () if self.sudo is None else (self.sudo, "-n")
        return (*before, self.program, *arguments)
