"""The tags that ceph-volume writes on its logical volumes, as LVM reports them: the OSD and the role of each volume.

LVM answers root only, and reads every disk for the answer. It is asked when there are signs of OSDs that no folder
names, and again when these signs have changed.
"""

from __future__ import annotations

import signal
from pathlib import Path

from predrain.collector.disks.process import ProcessResult, ProgramCall, Programs

LVS = "/usr/sbin/lvs"
ASKED = ("--readonly", "--reportformat", "json", "-o", "lv_path,lv_tags,devices")
"""With `--readonly` LVM takes no lock: it waits for no other process, and no other process waits for it."""
SECONDS = 30.0


class VolumeTags:
    """Asks LVM for the tags, with sudo if the collector is not root."""

    def __init__(self, sudo: str | None, program: str = LVS) -> None:
        self._program = program
        self._argv = (*(() if sudo is None else (sudo, "-n")), program, *ASKED)
        self._programs = Programs(1, signal.SIGTERM if sudo else signal.SIGKILL)
        self._asked_for: frozenset[str] = frozenset()
        self._told: bytes | None = None
        self.trouble: tuple[str, ...] = ()
        """The reason why LVM's answer is missing, and the cure."""

    def read_lvm_tags(self, doubts: frozenset[str]) -> bytes | None:
        """Return the output of `lvs`, or None if there are no `doubts`, no LVM or no answer."""
        if not doubts or not Path(self._program).exists():
            self._asked_for, self._told, self.trouble = frozenset(), None, ()
        elif doubts != self._asked_for:
            ((_, ended),) = self._programs.run([ProgramCall("lvs", self._argv)], SECONDS)
            self._told = ended.out if ended.out.lstrip().startswith(b"{") else None
            self.trouble = () if self._told else (_describe_lvm_failure(ended),)
            # A command that hung is run again. A command that was refused is not, because sudo logs each
            # refusal.
            self._asked_for = frozenset() if ended.why else doubts
        return self._told


def _describe_lvm_failure(ended: ProcessResult) -> str:
    why = ended.why or (ended.err.splitlines() or [f"exit status {ended.status}"])[-1][:300]
    return (
        f"LVM does not tell which OSDs' volumes are here (lvs: {why}), and the OSDs' folders do not tell of all; "
        "activate the OSDs (`ceph-volume lvm activate --all`), or take this release's sudoers file of the collector."
    )
