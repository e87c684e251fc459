"""The disk watch: polls every disk of this host and gives a reading of each, also of those that do not answer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from predrain.collector.disks.discovery import discover_disks
from predrain.collector.disks.disk_names import DiskNames, KnownDisk
from predrain.collector.disks.kernel_disks import block_names, kernel_id, translated_names
from predrain.collector.disks.known_places import KnownPlaces
from predrain.collector.disks.process import ProcessResult, ProgramCall, Programs
from predrain.collector.disks.smartctl import DiskPath, Smartctl
from predrain.collector.disks.smartctl_result import (
    DiskAsleep,
    DiskReadFailure,
    interpret_smartctl_run,
    taken_at,
)
from predrain.data.clock import Clock
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import OsdDevice, Protocol, Reading, Smart, Unreadable
from predrain.data.self_test import SelfTestState
from predrain.data.smart import SmartDocument
from predrain.data.unreadable import UnreadableCause

GONE_FOR = timedelta(hours=24)
"""Time for which a disk that is no longer listed is reported as unreadable: long enough to be noticed. After that it
counts as pulled."""

FELL_SILENT = "it tells its name and nothing of its state, as if it lacked SMART, and used to tell it"


@dataclass(frozen=True, slots=True)
class DiskWatchLimits:
    """The limits of one round."""

    parallel: int = 4
    """Disks that are asked at once."""
    seconds: float = 60.0
    """Seconds for one run of smartctl. A disk under load may take many."""
    spread_seconds: float = 30.0
    """The reads start at random times within this many seconds, so that the disks of a host do not slow down
    together."""


@dataclass(frozen=True, slots=True)
class DiskScan:
    """The result of a scan. Its sentences are for people."""

    found: tuple[DiskPath, ...]
    gone: tuple[str, ...]
    """Disks that were read here and are no longer listed."""
    refused: tuple[str, ...]
    """Entries of a list that cannot be asked, with the reason."""
    trouble: tuple[str, ...]
    """Failures of the scan itself, each with the cure."""


@dataclass(frozen=True, slots=True)
class FoundDisk:
    """A disk at the place where it is now."""

    spot: DiskPath
    blocks: tuple[str, ...]
    """Kernel names of its block devices; empty behind a RAID controller."""
    is_read: bool
    """True if the disk gave its name just now; False if only the kernel shows that it is still the same."""


class DiskWatch:
    """Reads every disk of this host, round by round.

    A disk is its device id and WWN, not the path at which it is seen.

    `find_osds_on`: gives the OSDs on a block device (`/dev/sda`).
    `kernel_errors`: gives the I/O errors since the last call, by kernel name.
    `state`: a small file that keeps the disks' names over restarts; None keeps them in memory.
    `root`: the folder that holds /sys and /dev.
    """

    def __init__(
        self,
        smartctl: Smartctl,
        clock: Clock,
        host: HostName,
        *,
        find_osds_on: Callable[[str], tuple[OsdDevice, ...]],
        kernel_errors: Callable[[str], int | None],
        random: Random,
        limits: DiskWatchLimits,
        state: Path | None = None,
        root: Path = Path("/"),
    ) -> None:
        self._smartctl, self._clock, self._host = smartctl, clock, host
        self._find_osds_on, self._kernel_errors = find_osds_on, kernel_errors
        self._random, self._limits, self._root = random, limits, root
        self._names = DiskNames(state)
        self._programs = Programs(limits.parallel, signal.SIGTERM if smartctl.sudo else signal.SIGKILL)
        self._spots: dict[str, DiskPath] | None = None
        self._missed: dict[DeviceId, int] = {}
        """Rounds since a disk was first missed."""
        self.nameless: tuple[str, ...] = ()
        """Places of the last round whose disk has no identity, or is another than was expected, and why."""
        self.asleep: tuple[DiskPath, ...] = ()
        """Disks of the last round in standby, which were not woken and have no reading."""
        self.self_tests: dict[DeviceId, tuple[SelfTestState, datetime]] = {}
        """The self-tests of each disk that reports any, with the time at which they were read."""

    @property
    def places(self) -> Mapping[str, DeviceId]:
        """The disk that was last read at each place: `/dev/sda`, `/dev/bus/0 megaraid,8`."""
        return {place: known.device for place, known in self._names.places.items()}

    def rescan(self) -> DiskScan:
        """Look for disks that were added or removed. If nothing could be listed, the known disks stay."""
        listing = discover_disks(self._smartctl, self._programs, self._limits.seconds, self._root)
        listed = {spot.place: spot for spot in listing.spots}
        if listing.whole:
            self._spots = listed
        else:
            was = self._spots or {place: DiskPath.from_place(place) for place in self._names.places}
            self._spots = {**was, **listed}
        gone = self._gone() if listing.whole else {}
        trouble = listing.trouble
        if listing.whole and not listing.spots:
            trouble += (
                "smartctl lists no disk on this host: run the collector where the disks are, with sudo",
            )
        if self._names.trouble is not None:
            trouble += (self._names.trouble,)
        told = tuple(f"{place}, where {known.device} was, is listed no more" for place, known in gone.items())
        return DiskScan(tuple(self._spots.values()), told, listing.refused, trouble)

    def read_disks(self) -> Generator[Reading, None, None]:
        """Read every disk once and yield each reading as soon as it is there; scan first if there was no scan yet.

        A disk that has a name and answered on none of its paths comes last, as `Unreadable`. A disk that is at no
        place comes in every other round. The round takes at most disks / parallel x seconds, even if disks hang.
        Closing the iterator ends the running programs.
        """
        if self._spots is None:
            self.rescan()
        spots = dict(self._spots or {})
        kernels = {place: kernel_id(spot, self._root) for place, spot in spots.items()}
        translated = translated_names(spots.values(), self._root)
        thought = {place: self._names.find_disk(place, kernel) for place, kernel in kernels.items()}
        met = KnownPlaces({place: known for place, known in thought.items() if known is not None})
        for place, expected in met.thought.items():
            # Letters may have changed: keep the name before an answer at the old place covers it.
            self._names.learn_disk(place, expected)
        try:
            for place, ended in self._looks(spots, met):
                seen = interpret_smartctl_run(ended)
                document = seen.document if isinstance(seen, DiskReadFailure) else seen
                if isinstance(document, SmartDocument) and document.device_id is not None:
                    who = document.smart.identity
                    device = translated.get(who.serial or "", document.device_id)
                    met.thought[place] = KnownDisk(device, who.wwn, kernels[place])
                    if (before := self._names.learn_disk(place, met.thought[place])) is not None:
                        met.remarks.append(
                            f"{place}, which was {before.device}, calls itself {device} now and has the"
                            f" same WWN {who.wwn}: its history goes on under the new name"
                        )
                known = met.thought.get(place)
                if isinstance(seen, SmartDocument) and known is not None:
                    seen = self._held_to(known.device, seen)
                if isinstance(seen, DiskReadFailure):
                    met.silent[place] = seen
                elif isinstance(seen, DiskAsleep):
                    met.asleep.append(place)
                    if known is not None:
                        met.record_disk(place, known)
                elif known is None:
                    met.remarks.append(
                        f"{place} answers, but with no serial number of its own: it has no device id"
                    )
                elif met.record_disk(place, known):
                    self._names.record_answer(known.device)
                    now = self._clock.now()
                    self._note_self_tests(known.device, seen, now)
                    yield self._reading(
                        place, known, met, taken_at(seen, now, self._limits.seconds), now, seen.smart
                    )
            yield from self._unread(met)
        finally:
            self.nameless = tuple(met.remarks)
            self.asleep = tuple(spots[place] for place in met.asleep)
            self._names.save()

    def reread_disks(self, devices: Collection[DeviceId]) -> Generator[Reading, None, None]:
        """Read these disks once more, each at the place where it was read last.

        A disk that does not answer, sleeps or is another one by now gives no reading: the next round reports its
        state. Closing the iterator ends the running programs.
        """
        spots, met = self._spots or {}, KnownPlaces(dict(self._names.places))
        places = {known.device: place for place, known in self._names.places.items() if place in spots}
        wanted = {places[device]: device for device in devices if device in places}
        translated = translated_names([spots[place] for place in wanted], self._root)
        jobs = [ProgramCall(place, self._smartctl.build_read_command(spots[place])) for place in wanted]
        for place, ended in self._programs.run(jobs, self._limits.seconds):
            seen = interpret_smartctl_run(ended)
            if not isinstance(seen, SmartDocument) or not seen.tells_state:
                continue
            told = translated.get(seen.smart.identity.serial or "", seen.device_id)
            if told == wanted[place]:
                now = self._clock.now()
                taken = taken_at(seen, now, self._limits.seconds)
                self._note_self_tests(wanted[place], seen, now)
                yield self._reading(place, self._names.places[place], met, taken, now, seen.smart)

    def find_disk(self, device: DeviceId) -> FoundDisk | None:
        """Ask the disk for its name at the place where it was read last; its self-tests are read with it.

        Return None if another disk is there, or if nothing shows that a silent disk is still there.
        """
        spots = self._spots or {}
        places = [place for place, known in self._names.places.items() if known.device == device]
        for place in (one for one in places if one in spots):
            spot, known = spots[place], self._names.places[place]
            job = ProgramCall(place, self._smartctl.build_read_command(spot))
            for _, ended in self._programs.run([job], self._limits.seconds):
                seen = interpret_smartctl_run(ended)
                if isinstance(seen, SmartDocument) and seen.device_id is not None:
                    serial = seen.smart.identity.serial or ""
                    if translated_names([spot], self._root).get(serial, seen.device_id) != device:
                        continue
                    self._note_self_tests(device, seen, self._clock.now())
                    return FoundDisk(spot, block_names(spot, self._root), is_read=True)
                if known.kernel is not None and kernel_id(spot, self._root) == known.kernel:
                    return FoundDisk(spot, block_names(spot, self._root), is_read=False)
        return None

    def run_on_disk(self, device: DeviceId, command: tuple[str, ...]) -> ProcessResult:
        """Run a program on a disk, with the deadline of a reading. It does not run beside another one of that key."""
        job = ProgramCall(f"request {device}", command)
        return next(result for _, result in self._programs.run([job], self._limits.seconds))

    def _note_self_tests(self, device: DeviceId, seen: SmartDocument, now: datetime) -> None:
        known = self.self_tests.get(device)
        if seen.self_tests is not None:
            self.self_tests[device] = seen.self_tests, now
        elif known is not None:  # a drive without a log that reports a test only while it runs
            self.self_tests[device] = SelfTestState(None, known[0].log), now

    def _held_to(self, device: DeviceId, seen: SmartDocument) -> SmartDocument | DiskReadFailure:
        """Return the document, or a failure if a SCSI drive no longer gives its mode and log pages.

        smartctl says that such a drive lacks SMART. If the drive gave the pages before, it has failed.
        """
        if seen.tells_state:
            self._names.mark_spoken(device)
        elif seen.smart.protocol is Protocol.SCSI and self._names.has_spoken(device):
            return DiskReadFailure(FELL_SILENT, UnreadableCause.IO_ERROR, seen)
        return seen

    def _looks(self, spots: Mapping[str, DiskPath], met: KnownPlaces) -> Iterator[tuple[str, ProcessResult]]:
        """Run smartctl on the places in random order; second paths come last, and only if the first was silent."""
        places = sorted(spots)
        self._random.shuffle(places)
        first = [place for place in places if place not in met.second_paths]
        starts = sorted(self._random.uniform(0, self._limits.spread_seconds) for _ in first)
        jobs = [
            ProgramCall(place, self._smartctl.build_read_command(spots[place]), start)
            for place, start in zip(first, starts, strict=True)
        ]
        yield from self._programs.run(jobs, self._limits.seconds)
        needed = (place for place in places if place in met.second_paths and not met.is_met(place))
        jobs = [ProgramCall(place, self._smartctl.build_read_command(spots[place])) for place in needed]
        yield from self._programs.run(jobs, self._limits.seconds)

    def _unread(self, met: KnownPlaces) -> Iterator[Reading]:
        """Yield the disks that stayed silent on every path.

        These disks are known only at the end of the round, because a disk may have moved to another place.
        """
        now = self._clock.now()
        for place, failed in met.silent.items():
            known, why = met.thought.get(place), failed.why
            if known is None:
                met.remarks.append(f"{place} has not reported its name yet: {why}")
            elif (elsewhere := met.find_place(known)) is None:
                yield self._unreadable(place, known, met, now, failed)
            elif elsewhere not in met.silent:
                met.remarks.append(
                    f"{place} is silent ({why}); {known.device}, which was read there, is at {elsewhere}"
                )
        absent = [*self._unlisted(met, now), *self._ousted(met, now)]
        self._missed = {reading.device: self._missed.get(reading.device, -1) + 1 for reading in absent}
        # Only every other round: another host may have the disk by now, and its readings must come in
        # between, since two failed readings in a row make a disk unreadable.
        yield from (reading for reading in absent if self._missed[reading.device] % 2 == 0)

    def _unlisted(self, met: KnownPlaces, now: datetime) -> Iterator[Reading]:
        """Yield the disks whose place is empty and that are at no other place."""
        for place, known in self._gone().items():
            if met.find_place(known) is not None:
                self._names.forget(place)
            elif now - self._names.record_failure(known.device, now) > GONE_FOR:
                self._names.forget(place)
                self._names.record_answer(known.device)
            else:
                why = f"{place} is listed no more: pulled, or off the bus"
                yield self._unreadable(
                    place, known, met, now, DiskReadFailure(why, UnreadableCause.DEVICE_GONE)
                )

    def _ousted(self, met: KnownPlaces, now: datetime) -> Iterator[Reading]:
        """Yield the disks at whose place another disk is and that are at no other place: letters move up when a disk
        dies.
        """
        expected = {known.device for known in self._names.places.values()}
        for device, ousted in tuple(self._names.ousted_disks.items()):
            if device in expected or met.find_place(ousted.known) is not None:
                self._names.settle_ousted(device)
            elif now - self._names.record_failure(device, now) > GONE_FOR:
                self._names.settle_ousted(device)
                self._names.record_answer(device)
            else:
                other = met.thought.get(ousted.place)
                there = f"where {other.device} is now" if other else "which is listed no more"
                why = f"it was at {ousted.place}, {there}, and is at no other place: pulled, or off the bus"
                # OSD devices and kernel errors are left out: those of the place belong to the other disk.
                seen = Unreadable(self._names.record_failure(device, now), why, UnreadableCause.DEVICE_GONE)
                yield Reading(device, self._host, now, now, seen)

    def _gone(self) -> dict[str, KnownDisk]:
        here = self._spots or {}
        return {place: known for place, known in self._names.places.items() if place not in here}

    def _unreadable(
        self, place: str, known: KnownDisk, met: KnownPlaces, now: datetime, failed: DiskReadFailure
    ) -> Reading:
        met.record_disk(place, known)
        seen = Unreadable(self._names.record_failure(known.device, now), failed.why, failed.cause)
        return self._reading(place, known, met, now, now, seen)

    def _reading(
        self,
        place: str,
        known: KnownDisk,
        met: KnownPlaces,
        taken: datetime,
        received: datetime,
        seen: Smart | Unreadable,
    ) -> Reading:
        blocks = tuple(
            dict.fromkeys(
                block
                for each in met.list_places(known, place)
                for block in block_names(DiskPath.from_place(each), self._root)
            )
        )
        errors = [told for block in blocks if (told := self._kernel_errors(block)) is not None]
        return Reading(
            device=known.device,
            host=self._host,
            taken_at=taken,
            received_at=received,
            seen=seen,
            osd_devices=tuple(
                dict.fromkeys(one for block in blocks for one in self._find_osds_on(f"/dev/{block}"))
            ),
            kernel_errors=sum(errors) if errors else None,
        )
