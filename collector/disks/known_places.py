"""The record of one round: the disks that were found, the paths of each, and the disks that stayed silent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from predrain.collector.disks.disk_names import KnownDisk
from predrain.collector.disks.smartctl_result import DiskReadFailure


class KnownPlaces:
    """Disks found so far. One disk may be seen at several places: two SAS paths, or `/dev/sda` and `megaraid,3`."""

    def __init__(self, thought: Mapping[str, KnownDisk]) -> None:
        """Start a round. `thought` maps each place to the disk that is expected there."""
        self.thought = dict(thought)
        self._met: defaultdict[str, dict[str, KnownDisk]] = defaultdict(dict)
        self.silent: dict[str, DiskReadFailure] = {}
        """For each place the failure that left it unread."""
        self.asleep: list[str] = []
        self.remarks: list[str] = []
        """Sentences about places whose disk has no name, or is another than was expected."""
        first: dict[tuple[str, str], str] = {}
        for place in sorted(self.thought):
            if (path := _build_path_key(self.thought[place])) is not None:
                first.setdefault(path, place)
        self.second_paths = frozenset(
            place
            for place, known in self.thought.items()
            if first.get(_build_path_key(known) or ("", ""), place) != place
        )
        """Places at which the kernel shows a disk that it also shows elsewhere."""

    def is_met(self, place: str) -> bool:
        """Return whether the disk that is expected at `place` was found, there or elsewhere."""
        known = self.thought.get(place)
        return known is not None and self.find_place(known) is not None

    def record_disk(self, place: str, known: KnownDisk) -> bool:
        """Record that a disk is at `place`. Return whether it was found for the first time."""
        before = self.find_place(known)
        if before is None:
            for other, each in self._met[known.device].items():
                apart = f"{known.wwn or known.kernel} and {each.wwn or each.kernel}"
                self.remarks.append(
                    f"{place} and {other} are both {known.device} with the WWNs {apart}: two disks share one name and"
                    " one history"
                )
            self._met[known.device][place] = known
        elif before != place and (known.wwn or known.kernel) is None:
            self.remarks.append(
                f"{place} and {before} are both {known.device} and neither tells a WWN: they are taken for one disk on"
                " two paths, of which the first is read"
            )
        return before is None

    def find_place(self, known: KnownDisk) -> str | None:
        """Return the place at which a disk was found, or None.

        Two disks are the same if their ids are equal, and also their WWNs, or else the kernel's identifiers, where
        both are known.
        """
        return next(
            (place for place, each in self._met[known.device].items() if _is_same_disk(each, known)),
            None,
        )

    def list_places(self, known: KnownDisk, place: str) -> tuple[str, ...]:
        """Return every place at which the disk is, or is expected to be."""
        others = (other for other, each in self.thought.items() if _is_same_disk(each, known))
        return tuple(dict.fromkeys((place, *others)))


def _is_same_disk(one: KnownDisk, other: KnownDisk) -> bool:
    if one.device != other.device:
        return False
    for mine, theirs in ((one.wwn, other.wwn), (one.kernel, other.kernel)):
        if mine is not None and theirs is not None:
            return mine == theirs
    return True


def _build_path_key(known: KnownDisk) -> tuple[str, str] | None:
    return None if known.kernel is None else (known.device, known.kernel)
