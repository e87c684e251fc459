"""The tags that ceph-volume writes on its logical volumes, as LVM tells them: whose each is and what it keeps.

LVM answers root only, and reads every disk for it. It is asked when something speaks for OSDs that no folder tells,
and again when that has changed.
"""

from __future__ import annotations

import signal
from pathlib import Path

from predrain.collector.disks.process import Job, ProcessResult, Programs

LVS = "/usr/sbin/lvs"
ASKED = ("--readonly", "--reportformat", "json", "-o", "lv_path,lv_tags,devices")
"""`--readonly`: it takes no lock, so that it waits for nobody's and nobody waits for its."""
SECONDS = 30.0


class VolumeTags:
    """Asks LVM, under sudo where we are not root."""

    def __init__(self, sudo: str | None, program: str = LVS) -> None:
        self._program = program
        self._argv = (*(() if sudo is None else (sudo, "-n")), program, *ASKED)
        self._programs = Programs(1, signal.SIGTERM if sudo else signal.SIGKILL)
        self._asked_for: frozenset[str] = frozenset()
        self._told: bytes | None = None
        self.trouble: tuple[str, ...] = ()
        """Why LVM's answer is missing, and the cure."""

    def told(self, doubts: frozenset[str]) -> bytes | None:
        """What `lvs` printed; None where there is no doubt, no LVM or no answer."""
        if not doubts or not Path(self._program).exists():
            self._asked_for, self._told, self.trouble = frozenset(), None, ()
        elif doubts != self._asked_for:
            ((_, ended),) = self._programs.run([Job("lvs", self._argv)], SECONDS)
            self._told = ended.out if ended.out.lstrip().startswith(b"{") else None
            self.trouble = () if self._told else (_missing(ended),)
            # What hung is asked again, what was refused is not: sudo logs each refusal.
            self._asked_for = frozenset() if ended.why else doubts
        return self._told


def _missing(ended: ProcessResult) -> str:
    why = ended.why or (ended.err.splitlines() or [f"exit status {ended.status}"])[-1][:300]
    return (
        f"LVM does not tell which OSDs' volumes are here (lvs: {why}), and the OSDs' folders do not tell of all; "
        "activate the OSDs (`ceph-volume lvm activate --all`), or take this release's sudoers file of the collector."
    )
