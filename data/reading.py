"""One look at one disk: what it said of itself, or that it could not be read.

All times are UTC and aware; bytes are bytes; temperatures are degrees Celsius; a value of None means that the
drive does not report it, which is neither zero nor healthy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.unreadable import UnreadableCause

if TYPE_CHECKING:
    from predrain.data.windows import Windows


class Protocol(StrEnum):
    """What smartctl spoke with the drive."""

    ATA = "ata"
    SCSI = "scsi"
    NVME = "nvme"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the drive says it is. Masked or missing fields are None."""

    vendor: str | None = None
    model: str | None = None
    family: str | None = None
    serial: str | None = None
    wwn: str | None = None
    """Lower-case hex without prefix."""
    firmware: str | None = None
    capacity_bytes: int | None = None
    rotation_rpm: int | None = None
    """0 for SSD and NVMe."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Decoded counters under names that mean the same on ATA, SCSI and NVMe."""

    reallocated: int | None = None
    pending: int | None = None
    offline_uncorrectable: int | None = None
    reported_uncorrectable: int | None = None
    command_timeouts: int | None = None
    crc_errors: int | None = None
    end_to_end_errors: int | None = None
    media_errors: int | None = None
    grown_defects: int | None = None
    non_medium_errors: int | None = None
    uncorrected_errors: int | None = None
    percentage_used: int | None = None
    available_spare_pct: int | None = None
    critical_warning: int | None = None
    unsafe_shutdowns: int | None = None
    bytes_written: int | None = None
    bytes_read: int | None = None


class Attribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One row of the ATA attribute table. `raw` is decoded where the vendor packs several counts into one.

    A reading has two dozen: as a struct each is read and written as it is, which dataclasses are not.
    """

    name: str
    raw: int
    value: int | None = None
    worst: int | None = None
    threshold: int | None = None
    raw_packed: int | None = None
    """The undecoded integer, when it differs from `raw`."""


@dataclass(frozen=True, slots=True)
class Logs:
    """What a drive's own logs tell besides its counters. None: it keeps no such log, or was not asked for it."""

    logged_errors: int | None = None
    """Commands that ended in an error, over the drive's life. On NVMe those that were wrong count, too."""
    failed_self_tests: int | None = None
    """Self-tests that found the drive broken, since the newest long one that it passed."""
    link_errors: int | None = None
    """Frames or words that drive and host called broken (SATA R_ERR; SAS invalid words and disparity errors)."""
    link_losses: int | None = None
    """How often the link was lost."""


@dataclass(frozen=True, slots=True)
class Smart:
    """What a drive said: the decoded output of one smartctl run."""

    protocol: Protocol
    identity: Identity
    passed: bool | None
    """The vendor's own verdict; None when it was not given."""
    counters: Counters
    attributes: Mapping[int, Attribute] = field(default_factory=dict)
    power_on_hours: int | None = None
    temperature_c: int | None = None
    exit_bits: tuple[int, ...] | None = None
    """Bits set in smartctl's exit status; None when the source does not carry it (text)."""
    spare_threshold_pct: int | None = None
    """NVMe: the drive's own limit for `available_spare_pct`."""
    logs: Logs | None = None
    """None where no log was shown."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The probe failed. This is evidence about the disk, not a gap, unless the cause blames the host."""

    since: datetime
    why: str
    """A sentence for people; programs decide by `cause`."""
    cause: UnreadableCause = UnreadableCause.UNKNOWN


class Role(StrEnum):
    """What an OSD keeps on a device."""

    DATA = "data"
    DB = "db"
    WAL = "wal"
    JOURNAL = "journal"


@dataclass(frozen=True, slots=True)
class Seat:
    """An OSD that lies on a device, with what it keeps there. One NVMe can have many."""

    osd: OsdId
    role: Role


@dataclass(frozen=True, slots=True)
class Reading:
    """One disk at one instant. Rows of a device are ordered by `taken_at`; the last of a UTC day is its daily value."""

    device: DeviceId
    host: HostName
    taken_at: datetime
    received_at: datetime
    seen: Smart | Unreadable
    seats: tuple[Seat, ...] = ()
    """OSDs on the device when it was read; empty where there are none or nobody could tell."""
    kernel_errors: int | None = None
    """I/O errors that the kernel logged of the device since its reading before; None: its log was not readable."""
    kernel_errors_shared: bool = False
    """Other disks of the host had I/O errors at the same time, so that the host is at fault. No sender says it and no
    store keeps it: the worker finds it where it sees the readings of a host's disks together."""


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """One OSD over one window, as its host measured it. Latencies in milliseconds; None means no data, never 0.

    Where a store has merged windows that are older than a day, `*_p50` is the median by operations of theirs, and
    `*_p99` the highest of theirs.
    """

    osd: OsdId
    host: HostName
    window_start: datetime
    window_seconds: float
    operations: int
    read_ms_p50: float | None = None
    read_ms_p99: float | None = None
    write_ms_p50: float | None = None
    write_ms_p99: float | None = None
    commit_ms_p50: float | None = None
    commit_ms_p99: float | None = None
    device_await_ms: float | None = None
    iops: float | None = None
    queue: float | None = None
    slow_ops: int | None = None
    backfills_max: int | None = None
    """Backfills that the OSD lets run at once as a primary (`local_reservations.max_allowed`), which is what is in
    force whatever is configured.
    """
    recovering: bool | None = None
    """Whether the OSD recovered or backfilled within the window."""
    scrubbing: bool | None = None
    """Whether the OSD scrubbed within the window."""


@dataclass(frozen=True, slots=True)
class LatencyBatch:
    """What one host counted of its OSDs: the unit in which latencies are sent."""

    host: HostName
    windows: tuple[Windows, ...]
    lost: int = 0
    """Summaries that the host could neither send nor keep since the batch before."""

    @property
    def summaries(self) -> tuple[LatencySummary, ...]:
        """One for each OSD and window."""
        return tuple(chain.from_iterable(one.summaries() for one in self.windows))
