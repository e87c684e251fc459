"""Finds the disks: smartctl's own list, pySMART's list, and the slots of RAID controllers that neither list covers.

Each source may fail alone: the disks of the others are kept, and the missing source is reported.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from predrain.collector.disks.kernel_disks import is_sata, list_raid_slots
from predrain.collector.disks.process import ProcessResult, ProgramCall, Programs
from predrain.collector.disks.smartctl import DiskPath, Smartctl
from predrain.collector.disks.smartctl_result import DiskReadFailure, interpret_smartctl_run
from predrain.data.smart.json_text import NotJsonError, first_object
from predrain.data.smart.json_values import JsonObject, iterate_json_objects, read_json_object, read_json_text

_LINE = re.compile(r"#?\s*(\S+) -d (\S+)(?:\s+#.*)?")
_MOST_DISKS = 2048
_NO_TYPE = ("scsi", "sat,auto")  # the types with which an unopened disk is listed

_OPENED, _UNOPENED, _PYSMART = "smartctl --scan-open", "smartctl --scan", "pySMART's list of disks"
_SLOTS_SECONDS = 120.0
"""No further slot is asked after this time: a controller that hangs has many slots."""


@dataclass(frozen=True, slots=True)
class DiscoveredDisks:
    """The result of one search."""

    spots: tuple[DiskPath, ...]
    refused: tuple[str, ...]
    """Entries that are no disks that can be asked, one sentence each."""
    trouble: tuple[str, ...]
    """Sources that did not answer, one sentence each."""
    whole: bool
    """True if smartctl's own list was read: a disk that is not in it is gone."""


class _Child(msgspec.Struct):
    lines: list[str] = []
    missing: str | None = None


def discover_disks(smartctl: Smartctl, programs: Programs, seconds: float, root: Path) -> DiscoveredDisks:
    """Find the disks of this host, each place once. Takes at most a few times `seconds`."""
    answers = dict(
        programs.run(
            [ProgramCall(_OPENED, smartctl.list_opened()), ProgramCall(_UNOPENED, smartctl.list_unopened())],
            seconds,
        )
    )
    if not any(ended.begun for ended in answers.values()):
        return DiscoveredDisks((), (), (f"smartctl {answers[_OPENED].why}: {smartctl.cure}",), whole=False)
    if answers[_OPENED].why is None:
        # Otherwise pySMART would hang on the same disk: it runs the same command.
        answers.update(programs.run([ProgramCall(_PYSMART, _build_pysmart_command(smartctl))], seconds))
    found: dict[str, DiskPath] = {}
    refused: list[str] = []
    trouble: list[str] = []
    whole = False
    for source in (_OPENED, _UNOPENED, _PYSMART):  # the source with the best types first
        if (ended := answers.get(source)) is None:
            continue
        try:
            spots, odd = _pysmart_spots(ended) if source == _PYSMART else _parse_listed_spots(ended)
        except _Silent as why:
            trouble.append(f"{source} {why}")
            continue
        whole = whole or source != _PYSMART
        refused.extend(sentence for sentence in odd if sentence not in refused)
        for spot in spots:
            typed = _resolve_spot_type(spot, source, root)
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


def _resolve_spot_type(spot: DiskPath, source: str, root: Path) -> DiskPath:
    """Return the place of a disk with the type to ask it by.

    A SATA drive that did not identify itself while the list was made is listed as `scsi`. If it is asked with that
    type, it never reports its name. If it is asked as SATA, it does, or smartctl gives the reason why not.
    """
    if spot.type not in _NO_TYPE:
        return spot
    if is_sata(spot, root):
        return DiskPath(spot.path, "sat")
    return DiskPath(spot.path) if source == _UNOPENED else spot


class _Silent(Exception):
    """A source gave no list. The text follows the name of the source."""


def _parse_listed_spots(ended: ProcessResult) -> tuple[list[DiskPath], list[str]]:
    found = _parse_answer(ended)
    if "devices" not in found and read_json_object(found, "smartctl").get("exit_status") != 0:
        said = next(
            (
                read_json_text(each, "string", 4096)
                for each in iterate_json_objects(read_json_object(found, "smartctl"), "messages")
            ),
            None,
        )
        raise _Silent(f"failed ({said or f'exit status {ended.status}'}): run it as root to see why")
    spots: list[DiskPath] = []
    refused: list[str] = []
    for device in iterate_json_objects(found, "devices"):
        path, kind = read_json_text(device, "name") or "", read_json_text(device, "type") or "auto"
        _accept_or_refuse_spot(DiskPath(path, kind), spots, refused)
    return spots, refused


def _parse_answer(ended: ProcessResult) -> JsonObject:
    if ended.why is not None:
        raise _Silent(ended.why)
    try:
        return first_object(ended.out)
    except NotJsonError as reason:
        words = ended.err.splitlines()[-1] if ended.err else str(reason)
        raise _Silent(
            f"printed no JSON ({words[:300]}): smartmontools 7 or later is needed, as root"
        ) from None


def _pysmart_spots(ended: ProcessResult) -> tuple[list[DiskPath], list[str]]:
    if ended.why is not None or ended.status != 0:
        why = ended.why or (ended.err.splitlines() or ["it failed"])[-1][:300]
        raise _Silent(f"could not be had ({why}): smartctl's own is used")
    try:
        told = msgspec.json.decode(ended.out, type=_Child)
    except msgspec.MsgspecError as error:
        raise _Silent(f"could not be understood ({error}): smartctl's own is used") from None
    if told.missing is not None:
        raise _Silent("could not be had (pySMART is not installed): smartctl's own is used")
    spots: list[DiskPath] = []
    for line in told.lines:
        if (match := _LINE.fullmatch(line.strip())) is not None:
            _accept_or_refuse_spot(DiskPath(match[1], match[2]), spots, [])
    return spots, []


def _accept_or_refuse_spot(spot: DiskPath, spots: list[DiskPath], refused: list[str]) -> None:
    if spot.is_safe:
        spots.append(spot)
    else:
        refused.append(
            f"{spot.path!r} of type {spot.type!r} was listed and is not asked: no name of a device in /dev"
        )


def _build_pysmart_command(smartctl: Smartctl) -> tuple[str, ...]:
    child = Path(__file__).with_name("pysmart_child.py")
    return (sys.executable, "-I", str(child), smartctl.program, *(["sudo"] if smartctl.sudo else []))


def _in_slots(
    smartctl: Smartctl, programs: Programs, seconds: float, root: Path
) -> tuple[list[DiskPath], bool]:
    """Find the slots in which a disk reports its identity, sleeps or hangs (an empty slot says so at once).

    Return them, and whether all slots were asked.
    """
    spots = {spot.place: spot for spot in list_raid_slots(root)}
    until = time.monotonic() + _SLOTS_SECONDS
    jobs = (
        ProgramCall(spot.place, smartctl.ask_name(spot))
        for spot in spots.values()
        if time.monotonic() < until
    )
    answers = {place: (ended, interpret_smartctl_run(ended)) for place, ended in programs.run(jobs, seconds)}
    taken = [
        spots[place]
        for place, (ended, seen) in answers.items()
        if ended.why is not None or not isinstance(seen, DiskReadFailure) or seen.document is not None
    ]
    return taken, len(answers) == len(spots)
