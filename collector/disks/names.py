"""Who was read where: kept on disk, so that a disk that hangs still has its name after a restart.

A small JSON file, replaced as a whole. Losing it loses no reading: names are learnt anew from the disks that answer.
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
    """What the kernel called it then (`collector.disks.kernel.kernel_id`)."""


class Ousted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A disk at whose place another one was read since."""

    place: str
    known: KnownDisk


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    places: dict[str, KnownDisk]
    failing: dict[DeviceId, datetime]
    ousted: dict[DeviceId, Ousted] = {}
    speaking: set[DeviceId] = set()


class Names:
    """Places and the disks that were read there; disks that fail and since when; disks that told their state."""

    def __init__(self, file: Path | None) -> None:
        """Read `file`; None keeps nothing beyond the process. What cannot be read is told in `trouble`."""
        self._file = file
        self._places: dict[str, KnownDisk] = {}
        self._failing: dict[DeviceId, datetime] = {}
        self._ousted: dict[DeviceId, Ousted] = {}
        self._speaking: set[DeviceId] = set()
        self._changed = False
        self.trouble: str | None = None
        """Why names may be lost at the next start, and the cure."""
        if file is not None:
            self._read(file)

    @property
    def places(self) -> Mapping[str, KnownDisk]:
        """Every place with the disk that was last read there."""
        return self._places

    def at(self, place: str, kernel: str | None) -> KnownDisk | None:
        """The disk at `place`, unless the kernel shows another there by now; then whichever it shows."""
        known = self._places.get(place)
        if known is None or (kernel and known.kernel and kernel != known.kernel):
            if kernel is None:
                return None
            ousted = (one.known for one in self._ousted.values())
            return next((each for each in (*self._places.values(), *ousted) if each.kernel == kernel), None)
        return known

    @property
    def ousted(self) -> Mapping[DeviceId, Ousted]:
        """Disks that lost their place to another: met elsewhere, or missing."""
        return self._ousted

    def learn(self, place: str, known: KnownDisk) -> KnownDisk | None:
        """A disk told its name; returns the disk that had another name there and is the same by its WWN."""
        before = self._places.get(place)
        if before == known:
            return None
        self._places[place] = known
        self._changed = True
        if before is None or before.device == known.device:
            return None
        if before.wwn is not None and before.wwn == known.wwn:
            return before
        self._ousted[before.device] = Ousted(place, before)
        return None

    def settle(self, device: DeviceId) -> None:
        """An ousted disk was met elsewhere, or is waited for no longer."""
        self._changed = self._ousted.pop(device, None) is not None or self._changed

    def forget(self, place: str) -> None:
        """Nothing is at `place` any more."""
        self._changed = self._places.pop(place, None) is not None or self._changed

    def failed(self, device: DeviceId, now: datetime) -> datetime:
        """Since when the disk could not be read. A clock that was set back does not make that the future."""
        since = self._failing.get(device)
        if since is None or since > now:
            self._failing[device] = since = now
            self._changed = True
        return since

    def answered(self, device: DeviceId) -> None:
        """The disk could be read."""
        self._changed = self._failing.pop(device, None) is not None or self._changed

    def spoke(self, device: DeviceId) -> None:
        """The disk told its state."""
        self._changed = self._changed or device not in self._speaking
        self._speaking.add(device)

    def has_spoken(self, device: DeviceId) -> bool:
        """Whether the disk ever told its state here."""
        return device in self._speaking

    def save(self) -> None:
        """Write what changed since the last time. A disk that is full only costs names: told in `trouble`."""
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
                f"{file} is not readable ({error}): the names of disks are learnt anew, it needs nobody"
            )
            return
        if found.format != _FORMAT or any(since.tzinfo is None for since in found.failing.values()):
            self.trouble = (
                f"{file} has format {found.format} and this predrain knows {_FORMAT}: it is written anew"
            )
            return
        self._places, self._failing, self._ousted = found.places, found.failing, found.ousted
        self._speaking = found.speaking
