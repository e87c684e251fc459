"""Snapshots for tests of messages: a fleet of good disks, some of which a test makes sick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from predrain.actions.core.drain_policy import Mode, Policy
from predrain.data.drain import Drain
from predrain.data.halt_state import Halt, HaltAuthor
from predrain.data.ids import DeviceId, HostName
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Outlook, Reason, Status
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.life_book import LifeBook
from predrain.service.notifications.cause import AlertSnapshot, ForecastConcern
from tests.service.lives import build_living_snapshot, hearing_book

NOW = datetime(2026, 11, 21, 3, 14, tzinfo=UTC)
PENDING = Reason("pending-rose", "Pending sectors rose on 5 of the last 7 days, 0 to 48.", "pending")


def device(number: int) -> DeviceId:
    return DeviceId(f"ST4000DM000_Z{number:05d}")


def host_of(number: int) -> HostName:
    return HostName(f"stor-{number // 10:02d}")


@dataclass
class Fleet:
    """`disks` disks, ten a host, read ten minutes ago."""

    disks: int = 40
    now: datetime = NOW
    models: Mapping[int, str] = field(default_factory=dict)
    firmware: Mapping[int, str] = field(default_factory=dict)
    outlooks: dict[DeviceId, Outlook] = field(default_factory=dict)
    announced: dict[DeviceId, Outlook] = field(default_factory=dict)
    """The announced outlooks of the disks whose newest outlook is another one."""
    unread: dict[DeviceId, Unreadable] = field(default_factory=dict)
    silent: dict[HostName, datetime] = field(default_factory=dict)
    pulled: dict[DeviceId, datetime] = field(default_factory=dict)
    drains: Sequence[Drain] = ()
    halted: str | None = None
    halt_author: HaltAuthor = HaltAuthor.PERSON
    broken: tuple[ForecastConcern, ...] = ()
    doubts: tuple[ForecastConcern, ...] = ()
    mode: Mode = Mode.PROPOSE
    ended: dict[DeviceId, datetime] = field(default_factory=dict)
    settled: bool = True
    host_mismatches: dict[HostName, HostName] = field(default_factory=dict)
    _book: LifeBook | None = field(default=None, init=False)

    def sicken(
        self,
        *numbers: int,
        status: Status = Status.BAD,
        reason: Reason = PENDING,
        ago: timedelta = timedelta(minutes=10),
    ) -> None:
        for number in numbers:
            self.outlooks[device(number)] = Outlook(
                device(number), self.now - ago, status, "model:default", (reason,),
                "Drain it now and replace the disk.", 0.1, 0.3, 0.68,
            )  # fmt: skip

    def snapshot(self) -> AlertSnapshot:
        readings = {device(number): self._reading(number) for number in range(self.disks)}
        halt = Halt(self.halt_author, self.halted) if self.halted is not None else None
        seen = FleetSnapshot(readings, dict(self.outlooks), {}, tuple(self.drains), halt, None)
        stale_after = timedelta(hours=2)
        self._book = self._book or hearing_book(seen, self.now, stale_after)
        ends = [Outcome(name, at, DriveFate.FAILED, "jo") for name, at in self.ended.items()]
        fleet = build_living_snapshot(seen, self.now, stale_after, ends, self._book)
        return AlertSnapshot(
            fleet, self.outlooks | self.announced, self.now, timedelta(hours=2), replace(Policy(), mode=self.mode),
            self.broken, self.doubts, self.settled, self.host_mismatches,
        )  # fmt: skip

    def _reading(self, number: int) -> Reading:
        name = device(number)
        at = self.pulled.get(name, self.silent.get(host_of(number), self.now - timedelta(minutes=10)))
        seen = self.unread.get(name) or Smart(
            Protocol.ATA,
            Identity(
                model=self.models.get(number, "ST4000DM000"),
                serial=f"Z{number:05d}",
                firmware=self.firmware.get(number, "CC54"),
            ),
            True,
            Counters(pending=0),
            {197: Attribute("Current_Pending_Sector", 0)},
        )  # fmt: skip
        return Reading(name, host_of(number), at, at, seen)
