"""The books of one round: which disks were met, on which of their paths, and which stayed silent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from predrain.collector.disks.look import Failed
from predrain.collector.disks.names import KnownDisk


class Met:
    """Disks met so far. One disk may be seen on several places: two SAS paths, or `/dev/sda` and `megaraid,3`."""

    def __init__(self, thought: Mapping[str, KnownDisk]) -> None:
        """thought: place to the disk that is thought to be there."""
        self.thought = dict(thought)
        self._met: defaultdict[str, dict[str, KnownDisk]] = defaultdict(dict)
        self.silent: dict[str, Failed] = {}
        """Place to why nothing was read there."""
        self.asleep: list[str] = []
        self.remarks: list[str] = []
        """Sentences about places whose disk has no name, or another than was thought."""
        first: dict[tuple[str, str], str] = {}
        for place in sorted(self.thought):
            if (path := _path(self.thought[place])) is not None:
                first.setdefault(path, place)
        self.second_paths = frozenset(
            place
            for place, known in self.thought.items()
            if first.get(_path(known) or ("", ""), place) != place
        )
        """Places at which the kernel shows a disk that it shows elsewhere too."""

    def met(self, place: str) -> bool:
        """Whether the disk that is thought to be at `place` was met, there or elsewhere."""
        known = self.thought.get(place)
        return known is not None and self.where(known) is not None

    def meet(self, place: str, known: KnownDisk) -> bool:
        """A disk is at `place`; whether it was met for the first time."""
        before = self.where(known)
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

    def where(self, known: KnownDisk) -> str | None:
        """Where a disk was met: its id must be equal, and its WWN, or else the kernel's name of it, where both are
        known."""
        return next(
            (place for place, each in self._met[known.device].items() if _same(each, known)),
            None,
        )

    def places(self, known: KnownDisk, place: str) -> tuple[str, ...]:
        """Every place at which the disk is, or is thought to be."""
        others = (other for other, each in self.thought.items() if _same(each, known))
        return tuple(dict.fromkeys((place, *others)))


def _same(one: KnownDisk, other: KnownDisk) -> bool:
    if one.device != other.device:
        return False
    for mine, theirs in ((one.wwn, other.wwn), (one.kernel, other.kernel)):
        if mine is not None and theirs is not None:
            return mine == theirs
    return True


def _path(known: KnownDisk) -> tuple[str, str] | None:
    return None if known.kernel is None else (known.device, known.kernel)
