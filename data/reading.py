"""One reading of one disk: its own report, or the fact that it could not be read.

All times are UTC and aware; bytes are bytes; temperatures are degrees Celsius. None means that the drive does not
report the value, which is neither zero nor healthy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId
from predrain.data.unreadable import UnreadableCause


class Protocol(StrEnum):
    """The command set by which smartctl talked to the drive."""

    ATA = "ata"
    SCSI = "scsi"
    NVME = "nvme"


@dataclass(frozen=True, slots=True)
class Identity:
    """The drive's own identity. Masked or missing fields are None."""

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

    A reading has two dozen rows. A struct is encoded and decoded directly, a dataclass is not.
    """

    name: str
    raw: int
    value: int | None = None
    worst: int | None = None
    threshold: int | None = None
    raw_packed: int | None = None
    """The undecoded integer, if it differs from `raw`."""


@dataclass(frozen=True, slots=True)
class Logs:
    """The values of a drive's own logs besides its counters. None: it keeps no such log, or the log was not read."""

    logged_errors: int | None = None
    """Commands that ended in an error, over the drive's life. On NVMe invalid commands count, too."""
    failed_self_tests: int | None = None
    """Self-tests that found the drive broken, since the newest long one that it passed."""
    link_errors: int | None = None
    """Frames or words that drive and host reported as broken (SATA R_ERR; SAS invalid words and disparity errors)."""
    link_losses: int | None = None
    """Number of times that the link was lost."""


@dataclass(frozen=True, slots=True)
class Smart:
    """A drive's report: the decoded output of one smartctl run."""

    protocol: Protocol
    identity: Identity
    passed: bool | None
    """The vendor's own verdict; None if it was not given."""
    counters: Counters
    attributes: Mapping[int, Attribute] = field(default_factory=dict)
    power_on_hours: int | None = None
    temperature_c: int | None = None
    exit_bits: tuple[int, ...] | None = None
    """Bits set in smartctl's exit status; None if the source does not carry it (text)."""
    spare_threshold_pct: int | None = None
    """An NVMe drive's own limit for `available_spare_pct`."""
    logs: Logs | None = None
    """The drive's logs; None if no log was shown."""
    temperature_limit_c: int | None = None
    """The drive's own limit of operation: the highest operating temperature (ATA), the warning threshold (NVMe)."""
    temperature_critical_c: int | None = None
    """The drive's own last limit: the highest temperature (ATA), the critical threshold (NVMe), the trip point
    (SCSI).
    """


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The reading failed. This is evidence about the disk, not a gap, unless the cause lies with the host."""

    since: datetime
    why: str
    """A sentence for people; programs decide by `cause`."""
    cause: UnreadableCause = UnreadableCause.UNKNOWN


class Role(StrEnum):
    """The part of an OSD that is on a device."""

    DATA = "data"
    DB = "db"
    WAL = "wal"
    JOURNAL = "journal"


@dataclass(frozen=True, slots=True)
class OsdDevice:
    """An OSD that lies on a device, with its role there. One NVMe device can have many."""

    osd: OsdId
    role: Role
    cluster: ClusterId | None = None
    """The cluster of the OSD; None: its host's collector does not report it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One disk at one instant. Rows of a device are ordered by `taken_at`; the last of a UTC day is its daily value."""

    device: DeviceId
    host: HostName
    taken_at: datetime
    received_at: datetime
    seen: Smart | Unreadable
    osd_devices: tuple[OsdDevice, ...] = ()
    """OSDs on the device when it was read; empty if there are none or they are unknown."""
    kernel_errors: int | None = None
    """I/O errors that the kernel logged for the device since its previous reading; None: the log was not readable."""
    kernel_errors_shared: bool = False
    """True if other disks of the host had I/O errors at the same time, so that the host is at fault. It is neither
    sent nor stored: the worker computes it when it sees the readings of a host's disks together."""
