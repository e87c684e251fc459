"""The light of a disk's slot: by the enclosure's file in /sys, else by `ledctl`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from predrain.collector.disks.process import ProcessResult
from predrain.data.disk_request import RequestOutcome
from predrain.data.outside_text import clean_text

LONGEST_DETAIL = 300
_BLOCK = re.compile(r"[a-z][a-z0-9]{0,31}")
_SLOT_LINK = "enclosure_device:"
"""The kernel's link from a disk to its slot: `enclosure_device:Slot 05` (drivers/misc/enclosure.c)."""


@dataclass(frozen=True, slots=True)
class LightResult:
    """The result of one switch. `slot`: as the enclosure names it; None if no enclosure is known."""

    outcome: RequestOutcome
    detail: str = ""
    slot: str | None = None


@dataclass(frozen=True, slots=True)
class SlotLight:
    """Switches lights. `root`: the folder that holds /sys. `ledctl`: an absolute path."""

    ledctl: str
    sudo: str | None
    root: Path = Path("/")

    def switch(
        self, blocks: Sequence[str], *, on: bool, run: Callable[[tuple[str, ...]], ProcessResult]
    ) -> LightResult:
        """Switch the light of the disk with these block devices. `run` runs `ledctl`, if it is needed."""
        named = next((block for block in blocks if _BLOCK.fullmatch(block)), None)
        if named is None:
            return LightResult(RequestOutcome.NO_LIGHT, "the disk has no block device of its own")
        folder = self._find_slot(named)
        slot = folder.name.removeprefix(_SLOT_LINK).strip()[:64] if folder is not None else None
        if folder is not None and (folder / "locate").exists():
            try:
                (folder / "locate").write_text("1\n" if on else "0\n")
                return LightResult(RequestOutcome.DONE, "", slot)
            except OSError:
                pass  # only root may write there: ledctl runs with sudo
        verb = "locate" if on else "locate_off"
        before = () if self.sudo is None else (self.sudo, "-n")
        # Without --listed-only ledctl would switch off the lights of all other slots.
        ended = run((*before, self.ledctl, "--listed-only", f"{verb}=/dev/{named}"))
        outcome, detail = judge_run(ended)
        return LightResult(outcome or RequestOutcome.DONE, detail, slot)

    def _find_slot(self, block: str) -> Path | None:
        links = sorted((self.root / "sys/block" / block / "device").glob(f"{_SLOT_LINK}*"))
        return links[0] if links else None


def judge_run(ended: ProcessResult) -> tuple[RequestOutcome | None, str]:
    """Return why a program did not do what it was asked, with its words, or None if it exited with 0."""
    detail = clean_text(ended.err or ended.out.decode("utf-8", "replace"), LONGEST_DETAIL)
    if not ended.begun:
        outcome = RequestOutcome.NO_RIGHT if ended.denied else RequestOutcome.TOOL_MISSING
        return outcome, clean_text(ended.why or "", LONGEST_DETAIL)
    if ended.err.startswith("sudo:"):
        missing = "command not found" in ended.err
        return RequestOutcome.TOOL_MISSING if missing else RequestOutcome.NO_RIGHT, detail
    if ended.why is not None:
        return RequestOutcome.TOOL_FAILED, clean_text(ended.why, LONGEST_DETAIL)
    return (None, "") if ended.status == 0 else (RequestOutcome.TOOL_FAILED, detail)
