"""Which disks there are: smartctl's own list, pySMART's, and the slots of controllers that neither looks into.

Every source may fail alone; what the others list is kept, and what is missing is told.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from predrain.collector.disks.kernel import is_sata, slots
from predrain.collector.disks.look import Failed, look
from predrain.collector.disks.process import Job, ProcessResult, Programs
from predrain.collector.disks.smartctl import Smartctl, Spot
from predrain.data.smart.json_text import NotJsonError, first_object
from predrain.data.smart.values import JsonObject, member, members, text

_LINE = re.compile(r"#?\s*(\S+) -d (\S+)(?:\s+#.*)?")
_MOST_DISKS = 2048
_NO_TYPE = ("scsi", "sat,auto")  # what an unopened disk is listed as, whatever it is

_OPENED, _UNOPENED, _PYSMART = "smartctl --scan-open", "smartctl --scan", "pySMART's list of disks"
_SLOTS_SECONDS = 120.0
"""After so long no further slot is asked: a controller that hangs has many."""


@dataclass(frozen=True, slots=True)
class DiscoveredDisks:
    """What one search found."""

    spots: tuple[Spot, ...]
    refused: tuple[str, ...]
    """Entries that are no disks we can ask, one sentence each."""
    trouble: tuple[str, ...]
    """Sources that did not answer, one sentence each."""
    whole: bool
    """Whether smartctl's own list came, so that a disk that is not in it is gone."""


class _Child(msgspec.Struct):
    lines: list[str] = []
    missing: str | None = None


def search(smartctl: Smartctl, programs: Programs, seconds: float, root: Path) -> DiscoveredDisks:
    """List the disks of this host, each place once. Takes at most a few times `seconds`."""
    answers = dict(
        programs.run(
            [Job(_OPENED, smartctl.list_opened()), Job(_UNOPENED, smartctl.list_unopened())], seconds
        )
    )
    if not any(ended.begun for ended in answers.values()):
        return DiscoveredDisks((), (), (f"smartctl {answers[_OPENED].why}: {smartctl.cure}",), whole=False)
    if answers[_OPENED].why is None:
        # Else pySMART would hang on the same disk: it runs the same command.
        answers.update(programs.run([Job(_PYSMART, _pysmart(smartctl))], seconds))
    found: dict[str, Spot] = {}
    refused: list[str] = []
    trouble: list[str] = []
    whole = False
    for source in (_OPENED, _UNOPENED, _PYSMART):  # the best type first
        if (ended := answers.get(source)) is None:
            continue
        try:
            spots, odd = _pysmart_spots(ended) if source == _PYSMART else _listed(ended)
        except _Silent as why:
            trouble.append(f"{source} {why}")
            continue
        whole = whole or source != _PYSMART
        refused.extend(sentence for sentence in odd if sentence not in refused)
        for spot in spots:
            typed = _typed(spot, source, root)
            found.setdefault(typed.place, typed)
    spots, all_asked = _in_slots(smartctl, programs, seconds, root)
    found.update({spot.place: spot for spot in spots})
    if not all_asked:
        trouble.append(
            f"slots of a RAID controller were not all asked within {_SLOTS_SECONDS:g} s: it may hang"
        )
    if len(found) > _MOST_DISKS:
        trouble.append(
            f"{len(found)} disks are listed and {_MOST_DISKS} are read: no host has so many, look at smartctl"
        )
    return DiscoveredDisks(
        tuple(sorted(found.values()))[:_MOST_DISKS], tuple(refused), tuple(trouble), whole and all_asked
    )


def _typed(spot: Spot, source: str, root: Path) -> Spot:
    """A SATA drive that did not identify itself while the list was made is listed as `scsi`. Asked so, it never tells
    its name; asked as what it is, it does, or smartctl says why not.
    """
    if spot.type not in _NO_TYPE:
        return spot
    if is_sata(spot, root):
        return Spot(spot.path, "sat")
    return Spot(spot.path) if source == _UNOPENED else spot


class _Silent(Exception):
    """A source told nothing; the text follows its name."""


def _listed(ended: ProcessResult) -> tuple[list[Spot], list[str]]:
    found = _answer(ended)
    if "devices" not in found and member(found, "smartctl").get("exit_status") != 0:
        said = next(
            (text(each, "string", 4096) for each in members(member(found, "smartctl"), "messages")), None
        )
        raise _Silent(f"failed ({said or f'exit status {ended.status}'}): run it as root to see why")
    spots: list[Spot] = []
    refused: list[str] = []
    for device in members(found, "devices"):
        path, kind = text(device, "name") or "", text(device, "type") or "auto"
        _sort(Spot(path, kind), spots, refused)
    return spots, refused


def _answer(ended: ProcessResult) -> JsonObject:
    if ended.why is not None:
        raise _Silent(ended.why)
    try:
        return first_object(ended.out)
    except NotJsonError as reason:
        words = ended.err.splitlines()[-1] if ended.err else str(reason)
        raise _Silent(f"told nothing ({words[:300]}): smartmontools 7 or later is needed, as root") from None


def _pysmart_spots(ended: ProcessResult) -> tuple[list[Spot], list[str]]:
    if ended.why is not None or ended.status != 0:
        why = ended.why or (ended.err.splitlines() or ["it failed"])[-1][:300]
        raise _Silent(f"could not be had ({why}): smartctl's own is used")
    try:
        told = msgspec.json.decode(ended.out, type=_Child)
    except msgspec.MsgspecError as error:
        raise _Silent(f"could not be understood ({error}): smartctl's own is used") from None
    if told.missing is not None:
        raise _Silent("could not be had (pySMART is not installed): smartctl's own is used")
    spots: list[Spot] = []
    for line in told.lines:
        if (match := _LINE.fullmatch(line.strip())) is not None:
            _sort(Spot(match[1], match[2]), spots, [])
    return spots, []


def _sort(spot: Spot, spots: list[Spot], refused: list[str]) -> None:
    if spot.sound:
        spots.append(spot)
    else:
        refused.append(
            f"{spot.path!r} of type {spot.type!r} was listed and is not asked: no name of a device in /dev"
        )


def _pysmart(smartctl: Smartctl) -> tuple[str, ...]:
    child = Path(__file__).with_name("pysmart_child.py")
    return (sys.executable, "-I", str(child), smartctl.program, *(["sudo"] if smartctl.sudo else []))


def _in_slots(smartctl: Smartctl, programs: Programs, seconds: float, root: Path) -> tuple[list[Spot], bool]:
    """The slots in which a disk tells who it is, sleeps, or hangs (an empty one says so at once); whether all told."""
    spots = {spot.place: spot for spot in slots(root)}
    until = time.monotonic() + _SLOTS_SECONDS
    jobs = (Job(spot.place, smartctl.ask_name(spot)) for spot in spots.values() if time.monotonic() < until)
    answers = {place: (ended, look(ended)) for place, ended in programs.run(jobs, seconds)}
    taken = [
        spots[place]
        for place, (ended, seen) in answers.items()
        if ended.why is not None or not isinstance(seen, Failed) or seen.document is not None
    ]
    return taken, len(answers) == len(spots)
