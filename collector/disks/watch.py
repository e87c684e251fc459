"""The disk watch: one look at every disk of this host, a reading of each, also of those that do not answer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from predrain.collector.disks.discovery import search
from predrain.collector.disks.kernel import block_names, kernel_id, translated_names
from predrain.collector.disks.look import Asleep, Failed, look, taken_at
from predrain.collector.disks.met import Met
from predrain.collector.disks.names import KnownDisk, Names
from predrain.collector.disks.process import Job, ProcessResult, Programs
from predrain.collector.disks.smartctl import Smartctl, Spot
from predrain.data.clock import Clock
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Protocol, Reading, Seat, Smart, Unreadable
from predrain.data.smart import SmartDocument
from predrain.data.unreadable import UnreadableCause

GONE_FOR = timedelta(hours=24)
"""How long a disk that is listed no more is reported as unreadable: long enough to be seen, and then it was pulled."""

FELL_SILENT = "it tells its name and nothing of its state, as if it lacked SMART, and used to tell it"


@dataclass(frozen=True, slots=True)
class DiskWatchLimits:
    """What one round may take."""

    parallel: int = 4
    """Disks asked at once."""
    seconds: float = 60.0
    """For one run of smartctl. A disk under load may take many."""
    spread_seconds: float = 30.0
    """The looks start at random times within this, so that the disks of a host do not stumble together."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan found. Sentences are for people."""

    found: tuple[Spot, ...]
    gone: tuple[str, ...]
    """Disks that were read here and are listed no more."""
    refused: tuple[str, ...]
    """Entries of a list that cannot be asked, with the reason."""
    trouble: tuple[str, ...]
    """What did not work in scanning itself, with the cure."""


class DiskWatch:
    """Reads every disk of this host, round by round. A disk is its device id and WWN, not the path it is seen on.

    seats: the OSDs on a block device (`/dev/sda`). kernel_errors: I/O errors since the last call, by kernel name.
    state: a small file that keeps the disks' names over restarts; None keeps them in memory.
    root: where /sys and /dev are.
    """

    def __init__(
        self,
        smartctl: Smartctl,
        clock: Clock,
        host: HostName,
        *,
        seats: Callable[[str], tuple[Seat, ...]],
        kernel_errors: Callable[[str], int | None],
        random: Random,
        limits: DiskWatchLimits,
        state: Path | None = None,
        root: Path = Path("/"),
    ) -> None:
        self._smartctl, self._clock, self._host = smartctl, clock, host
        self._seats, self._kernel_errors = seats, kernel_errors
        self._random, self._limits, self._root = random, limits, root
        self._names = Names(state)
        self._programs = Programs(limits.parallel, signal.SIGTERM if smartctl.sudo else signal.SIGKILL)
        self._spots: dict[str, Spot] | None = None
        self._missed: dict[DeviceId, int] = {}
        """Rounds since a disk was missed first."""
        self.nameless: tuple[str, ...] = ()
        """Of the last round: places whose disk has no identity, or another than was thought, and why."""
        self.asleep: tuple[Spot, ...] = ()
        """Of the last round: disks in standby, which were not woken and have no reading."""

    @property
    def places(self) -> Mapping[str, DeviceId]:
        """The disk that was last read at each place: `/dev/sda`, `/dev/bus/0 megaraid,8`."""
        return {place: known.device for place, known in self._names.places.items()}

    def rescan(self) -> Scan:
        """Look for disks that came and went. Where nothing could be listed, what was known stays."""
        listing = search(self._smartctl, self._programs, self._limits.seconds, self._root)
        listed = {spot.place: spot for spot in listing.spots}
        if listing.whole:
            self._spots = listed
        else:
            was = self._spots or {place: Spot.at(place) for place in self._names.places}
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
        return Scan(tuple(self._spots.values()), told, listing.refused, trouble)

    def round(self) -> Generator[Reading, None, None]:
        """Look at every disk once and give its reading as soon as it is there; scans when it never did.

        A disk that answered on none of its paths, but had a name before, comes last as `Unreadable`; one that is
        nowhere does so in every other round. At most disks / parallel x seconds long, whatever hangs. To close it ends
        what runs.
        """
        if self._spots is None:
            self.rescan()
        spots = dict(self._spots or {})
        kernels = {place: kernel_id(spot, self._root) for place, spot in spots.items()}
        translated = translated_names(spots.values(), self._root)
        thought = {place: self._names.at(place, kernel) for place, kernel in kernels.items()}
        met = Met({place: known for place, known in thought.items() if known is not None})
        for place, expected in met.thought.items():
            # Letters may have moved: keep the name before an answer at the old place covers it.
            self._names.learn(place, expected)
        try:
            for place, ended in self._looks(spots, met):
                seen = look(ended)
                document = seen.document if isinstance(seen, Failed) else seen
                if isinstance(document, SmartDocument) and document.device_id is not None:
                    who = document.smart.identity
                    device = translated.get(who.serial or "", document.device_id)
                    met.thought[place] = KnownDisk(device, who.wwn, kernels[place])
                    if (before := self._names.learn(place, met.thought[place])) is not None:
                        met.remarks.append(
                            f"{place}, which was {before.device}, calls itself {device} now and has the"
                            f" same WWN {who.wwn}: its history goes on under the new name"
                        )
                known = met.thought.get(place)
                if isinstance(seen, SmartDocument) and known is not None:
                    seen = self._held_to(known.device, seen)
                if isinstance(seen, Failed):
                    met.silent[place] = seen
                elif isinstance(seen, Asleep):
                    met.asleep.append(place)
                    if known is not None:
                        met.meet(place, known)
                elif known is None:
                    met.remarks.append(
                        f"{place} answers, but with no serial number of its own: it has no device id"
                    )
                elif met.meet(place, known):
                    self._names.answered(known.device)
                    now = self._clock.now()
                    yield self._reading(
                        place, known, met, taken_at(seen, now, self._limits.seconds), now, seen.smart
                    )
            yield from self._unread(met)
        finally:
            self.nameless = tuple(met.remarks)
            self.asleep = tuple(spots[place] for place in met.asleep)
            self._names.save()

    def reread_disks(self, devices: Collection[DeviceId]) -> Generator[Reading, None, None]:
        """Read these disks once more, each where it was read last.

        A disk that does not answer, sleeps or is another one by now gives no reading: the next round says what became
        of it. To close it ends what runs.
        """
        spots, met = self._spots or {}, Met(dict(self._names.places))
        places = {known.device: place for place, known in self._names.places.items() if place in spots}
        wanted = {places[device]: device for device in devices if device in places}
        translated = translated_names([spots[place] for place in wanted], self._root)
        jobs = [Job(place, self._smartctl.look(spots[place])) for place in wanted]
        for place, ended in self._programs.run(jobs, self._limits.seconds):
            seen = look(ended)
            if not isinstance(seen, SmartDocument) or not seen.tells_state:
                continue
            told = translated.get(seen.smart.identity.serial or "", seen.device_id)
            if told == wanted[place]:
                now = self._clock.now()
                taken = taken_at(seen, now, self._limits.seconds)
                yield self._reading(place, self._names.places[place], met, taken, now, seen.smart)

    def _held_to(self, device: DeviceId, seen: SmartDocument) -> SmartDocument | Failed:
        """A SCSI drive that cannot give its mode and log pages is said to lack SMART. One that gave them before has
        failed to."""
        if seen.tells_state:
            self._names.spoke(device)
        elif seen.smart.protocol is Protocol.SCSI and self._names.has_spoken(device):
            return Failed(FELL_SILENT, UnreadableCause.IO_ERROR, seen)
        return seen

    def _looks(self, spots: Mapping[str, Spot], met: Met) -> Iterator[tuple[str, ProcessResult]]:
        """In random order; second paths last, and only where the first was silent."""
        places = sorted(spots)
        self._random.shuffle(places)
        first = [place for place in places if place not in met.second_paths]
        starts = sorted(self._random.uniform(0, self._limits.spread_seconds) for _ in first)
        jobs = [
            Job(place, self._smartctl.look(spots[place]), start)
            for place, start in zip(first, starts, strict=True)
        ]
        yield from self._programs.run(jobs, self._limits.seconds)
        needed = (place for place in places if place in met.second_paths and not met.met(place))
        jobs = [Job(place, self._smartctl.look(spots[place])) for place in needed]
        yield from self._programs.run(jobs, self._limits.seconds)

    def _unread(self, met: Met) -> Iterator[Reading]:
        """Disks that stayed silent on every path. Known only at the end: a disk may have moved to another place."""
        now = self._clock.now()
        for place, failed in met.silent.items():
            known, why = met.thought.get(place), failed.why
            if known is None:
                met.remarks.append(f"{place} has not told its name yet: {why}")
            elif (elsewhere := met.where(known)) is None:
                yield self._unreadable(place, known, met, now, failed)
            elif elsewhere not in met.silent:
                met.remarks.append(
                    f"{place} is silent ({why}); {known.device}, which was read there, is at {elsewhere}"
                )
        absent = [*self._unlisted(met, now), *self._ousted(met, now)]
        self._missed = {reading.device: self._missed.get(reading.device, -1) + 1 for reading in absent}
        # Every other round: another host may have the disk by now, and what it reads must come in between, since two
        # failed readings in a row make a disk unreadable.
        yield from (reading for reading in absent if self._missed[reading.device] % 2 == 0)

    def _unlisted(self, met: Met, now: datetime) -> Iterator[Reading]:
        """Disks at whose place there is nothing, and that are at no other."""
        for place, known in self._gone().items():
            if met.where(known) is not None:
                self._names.forget(place)
            elif now - self._names.failed(known.device, now) > GONE_FOR:
                self._names.forget(place)
                self._names.answered(known.device)
            else:
                why = f"{place} is listed no more: pulled, or off the bus"
                yield self._unreadable(place, known, met, now, Failed(why, UnreadableCause.DEVICE_GONE))

    def _ousted(self, met: Met, now: datetime) -> Iterator[Reading]:
        """Disks at whose place another one is, and that are at no other: letters move up when a disk dies."""
        expected = {known.device for known in self._names.places.values()}
        for device, ousted in tuple(self._names.ousted.items()):
            if device in expected or met.where(ousted.known) is not None:
                self._names.settle(device)
            elif now - self._names.failed(device, now) > GONE_FOR:
                self._names.settle(device)
                self._names.answered(device)
            else:
                other = met.thought.get(ousted.place)
                there = f"where {other.device} is now" if other else "which is listed no more"
                why = f"it was at {ousted.place}, {there}, and is at no other place: pulled, or off the bus"
                # No seats and no kernel errors: those of the place are the other disk's.
                seen = Unreadable(self._names.failed(device, now), why, UnreadableCause.DEVICE_GONE)
                yield Reading(device, self._host, now, now, seen)

    def _gone(self) -> dict[str, KnownDisk]:
        here = self._spots or {}
        return {place: known for place, known in self._names.places.items() if place not in here}

    def _unreadable(self, place: str, known: KnownDisk, met: Met, now: datetime, failed: Failed) -> Reading:
        met.meet(place, known)
        seen = Unreadable(self._names.failed(known.device, now), failed.why, failed.cause)
        return self._reading(place, known, met, now, now, seen)

    def _reading(
        self,
        place: str,
        known: KnownDisk,
        met: Met,
        taken: datetime,
        received: datetime,
        seen: Smart | Unreadable,
    ) -> Reading:
        blocks = tuple(
            dict.fromkeys(
                block for each in met.places(known, place) for block in block_names(Spot.at(each), self._root)
            )
        )
        errors = [told for block in blocks if (told := self._kernel_errors(block)) is not None]
        return Reading(
            device=known.device,
            host=self._host,
            taken_at=taken,
            received_at=received,
            seen=seen,
            seats=tuple(dict.fromkeys(seat for block in blocks for seat in self._seats(f"/dev/{block}"))),
            kernel_errors=sum(errors) if errors else None,
        )
