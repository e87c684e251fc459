"""The disk that was last read at each place, kept in a file so that a hanging disk still has its name after a
restart.

The file is small JSON and is replaced as a whole. Losing it loses no reading: the names are learnt again from the
disks that answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from predrain.data.ids import DeviceId

_LARGEST_FILE = 4 * 2**20
_FORMAT = 1


class KnownDisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The disk that was last read at a place."""

    device: DeviceId
    wwn: str | None = None
    kernel: str | None = None
    """The identifier that the kernel gave the disk then (`collector.disks.kernel_disks.kernel_id`)."""


class ReplacedDisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A disk at whose place another disk was read since."""

    place: str
    known: KnownDisk


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    places: dict[str, KnownDisk]
    failing: dict[DeviceId, datetime]
    ousted: dict[DeviceId, ReplacedDisk] = {}
    speaking: set[DeviceId] = set()


class DiskNames:
    """Places with the disks read there, failing disks with the time of their first failure, and disks that gave their
    state.
    """

    def __init__(self, file: Path | None) -> None:
        """Read `file`; with None nothing is kept beyond the process. If the file cannot be read, `trouble` says so."""
        self._file = file
        self._places: dict[str, KnownDisk] = {}
        self._failing: dict[DeviceId, datetime] = {}
        self._ousted: dict[DeviceId, ReplacedDisk] = {}
        self._speaking: set[DeviceId] = set()
        self._changed = False
        self.trouble: str | None = None
        """The reason why names may be lost at the next start, and the cure."""
        if file is not None:
            self._read(file)

    @property
    def places(self) -> Mapping[str, KnownDisk]:
        """Every place with the disk that was last read there."""
        return self._places

    def find_disk(self, place: str, kernel: str | None) -> KnownDisk | None:
        """Return the disk at `place`.

        If the kernel shows another disk there by now, return that disk, or None if unknown.
        """
        known = self._places.get(place)
        if known is None or (kernel and known.kernel and kernel != known.kernel):
            if kernel is None:
                return None
            ousted = (one.known for one in self._ousted.values())
            return next((each for each in (*self._places.values(), *ousted) if each.kernel == kernel), None)
        return known

    @property
    def ousted_disks(self) -> Mapping[DeviceId, ReplacedDisk]:
        """Disks that lost their place to another disk: each is found elsewhere, or is missing."""
        return self._ousted

    def learn_disk(self, place: str, known: KnownDisk) -> KnownDisk | None:
        """Record the name that a disk reported.

        Return the disk that had another name there if it is the same by its WWN.
        """
        before = self._places.get(place)
        if before == known:
            return None
        self._places[place] = known
        self._changed = True
        if before is None or before.device == known.device:
            return None
        if before.wwn is not None and before.wwn == known.wwn:
            return before
        self._ousted[before.device] = ReplacedDisk(place, before)
        return None

    def settle_ousted(self, device: DeviceId) -> None:
        """Remove an ousted disk: it was found elsewhere, or is no longer expected."""
        self._changed = self._ousted.pop(device, None) is not None or self._changed

    def forget(self, place: str) -> None:
        """Record that no disk is at `place` any more."""
        self._changed = self._places.pop(place, None) is not None or self._changed

    def record_failure(self, device: DeviceId, now: datetime) -> datetime:
        """Return the time since which the disk cannot be read.

        If the clock was set back, that time is not in the future.
        """
        since = self._failing.get(device)
        if since is None or since > now:
            self._failing[device] = since = now
            self._changed = True
        return since

    def record_answer(self, device: DeviceId) -> None:
        """Record that the disk could be read."""
        self._changed = self._failing.pop(device, None) is not None or self._changed

    def mark_spoken(self, device: DeviceId) -> None:
        """Record that the disk gave its state."""
        self._changed = self._changed or device not in self._speaking
        self._speaking.add(device)

    def has_spoken(self, device: DeviceId) -> bool:
        """Return whether the disk ever gave its state on this host."""
        return device in self._speaking

    def save(self) -> None:
        """Write the changes since the last call. A full disk costs only names, and `trouble` reports it."""
        if self._file is None or not self._changed:
            return
        self._speaking &= self._ousted.keys() | {known.device for known in self._places.values()}
        written = msgspec.json.encode(
            _File(_FORMAT, self._places, self._failing, self._ousted, self._speaking), order="sorted"
        )
        beside = self._file.with_name(f".{self._file.name}.new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(written)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._file)
        except OSError as error:
            self.trouble = (
                f"{self._file} cannot be written ({error.strerror}): give it room, or disks that hang lose their"
                " names at a restart"
            )
            return
        self._changed, self.trouble = False, None

    def _read(self, file: Path) -> None:
        try:
            with file.open("rb") as opened:
                found = msgspec.json.decode(opened.read(_LARGEST_FILE), type=_File)
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            self.trouble = (
                f"{file} is not readable ({error}): the names of disks are learnt again, without a person"
            )
            return
        if found.format != _FORMAT or any(since.tzinfo is None for since in found.failing.values()):
            self.trouble = (
                f"{file} has format {found.format} and this predrain knows {_FORMAT}: it is written again"
            )
            return
        self._places, self._failing, self._ousted = found.places, found.failing, found.ousted
        self._speaking = found.speaking
