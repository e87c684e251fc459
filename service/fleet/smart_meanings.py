"""The meanings of the numbers of a drive, in plain words: attributes of ATA drives, and counters of all drives.

The ATA standard gives attributes neither names nor meanings. smartctl names them by smartmontools' database of drives,
and one id may mean two things on drives of two makers, so that a meaning here belongs to an id and a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final


class WorseSide(StrEnum):
    """The side of a value on which a drive is worse than its peers."""

    HIGH = "high"
    """A higher raw value is worse."""
    LOW = "low"
    """A lower raw value is worse."""
    NORMALISED = "normalised"
    """A lower normalised value is worse; raw values of two drives cannot be compared."""


class MeaningSource(StrEnum):
    """The documents from which a meaning is taken."""

    SMARTMONTOOLS = "smartmontools"
    ATA = "ata"
    NVME = "nvme"
    SCSI = "scsi"
    PREDRAIN = "predrain"
    NONE = "none"


SOURCE_TEXTS: Final[Mapping[MeaningSource, str]] = {
    MeaningSource.SMARTMONTOOLS: "smartmontools, drivedb.h and smartctl(8)",
    MeaningSource.ATA: "ACS-4, device statistics and SATA phy event counters",
    MeaningSource.NVME: "NVM Express base specification, SMART / health information log",
    MeaningSource.SCSI: "SPC and SBC, log pages",
    MeaningSource.PREDRAIN: "predrain, what its collector counts",
    MeaningSource.NONE: "no public document; the maker's own",
}


@dataclass(frozen=True, slots=True)
class SmartMeaning:
    """The meaning of one value. `shows_fault`: a rare value is a sign of a fault, and not only of age or work."""

    title: str
    sentence: str
    side: WorseSide
    shows_fault: bool
    source: MeaningSource
    names: tuple[str, ...] = ()
    """The beginnings of smartctl's names to which the meaning of an ATA attribute belongs, in small letters."""
    unit: str = ""


_HIGH, _LOW, _NORM = WorseSide.HIGH, WorseSide.LOW, WorseSide.NORMALISED
_TOOLS, _ATA, _NVME, _SCSI = (
    MeaningSource.SMARTMONTOOLS,
    MeaningSource.ATA,
    MeaningSource.NVME,
    MeaningSource.SCSI,
)


def _fault(title: str, sentence: str, *names: str, side: WorseSide = _HIGH) -> SmartMeaning:
    return SmartMeaning(title, sentence, side, True, _TOOLS, names)


def _work(
    title: str,
    sentence: str,
    *names: str,
    side: WorseSide = _HIGH,
    unit: str = "",
    source: MeaningSource = _TOOLS,
) -> SmartMeaning:
    return SmartMeaning(title, sentence, side, False, source, names, unit)


ATTRIBUTE_MEANINGS: Final[Mapping[int, tuple[SmartMeaning, ...]]] = {
    1: (
        _fault(
            "Read error rate",
            "How often the drive needed its error correction to read. The raw value has a maker's own form, and "
            "millions are normal on many drives; the normalised value falls when the rate is high.",
            "raw_read_error_rate",
            side=_NORM,
        ),
    ),
    2: (_work("Throughput", "The drive's own rating of its speed.", "throughput_performance", side=_NORM),),
    3: (_work("Spin-up time", "How long the platters take to reach their speed.", "spin_up_time", side=_NORM),),
    4: (_work("Starts and stops", "How often the spindle was started.", "start_stop_count"),),
    5: (
        _fault(
            "Reallocated sectors",
            "Sectors that the drive gave up and replaced by spare ones. A rise means that the surface is being lost.",
            "reallocate", "retired_block", "reallocated",
        ),
    ),
    7: (
        _fault(
            "Seek error rate",
            "How often the heads missed their track. The raw value has a maker's own form on many drives.",
            "seek_error_rate",
            side=_NORM,
        ),
    ),
    8: (_work("Seek time", "The drive's own rating of how fast its heads move.", "seek_time", side=_NORM),),
    9: (_work("Power-on hours", "Hours that the drive has been powered on.", "power_on", unit="hours"),),
    10: (
        _fault(
            "Spin retries",
            "How often the platters did not reach their speed at the first attempt: a sign of a weak motor, or of weak "
            "power.",
            "spin_retry",
        ),
    ),
    11: (_fault("Calibration retries", "How often the heads had to be calibrated again.", "calibration_retry"),),
    12: (_work("Power cycles", "How often the drive was switched on.", "power_cycle"),),
    18: (_fault("Head health", "The drive's own rating of its heads.", "head_health", side=_NORM),),
    22: (
        _fault(
            "Helium level",
            "How full the sealed drive is of helium. It falls when the seal leaks.",
            "helium",
            side=_NORM,
        ),
    ),
    170: (
        _fault(
            "Spare blocks",
            "Blocks that are left to replace worn ones.",
            "reserve", "available_res", "unused_r",
            side=_NORM,
        ),
    ),
    171: (_fault("Failed programs", "Writes to flash cells that failed.", "program_fail"),),
    172: (_fault("Failed erases", "Erasures of flash blocks that failed.", "erase_fail"),),
    173: (_work("Wear", "How often the flash blocks were erased; the normalised value falls to its end of life.",
                "ave_block", "average", "wear_leveling", "max", side=_NORM),),
    174: (_work("Unexpected power losses", "How often power was lost without a warning.", "unexpect", "power_loss",
                "unsafe"),),
    175: (_fault("Power-loss protection", "The drive's test of the capacitor that lets it finish writes when power "
                 "fails.", "power_loss", side=_NORM),),
    177: (_work("Wear", "How often the flash blocks were erased; the normalised value falls to its end of life.",
                "wear_leveling", side=_NORM),),
    179: (_fault("Spare blocks used", "Spare blocks that already replace bad ones.", "used_rsvd"),),
    180: (_fault("Spare blocks left", "Spare blocks that are left to replace bad ones.", "unused_rsvd", side=_LOW),),
    181: (_fault("Failed programs", "Writes to flash cells that failed.", "program_fail"),),
    182: (_fault("Failed erases", "Erasures of flash blocks that failed.", "erase_fail"),),
    183: (
        _fault("Bad blocks at run time", "Blocks that failed while the drive worked.", "runtime_bad"),
        _fault("Slower links", "How often the SATA link had to fall back to a lower speed.", "sata_iface"),
    ),
    184: (
        _fault(
            "End-to-end errors",
            "Data that changed inside the drive, between its cache and its surface. Any such error is serious.",
            "end-to-end",
        ),
    ),
    187: (
        _fault(
            "Reported uncorrectable errors",
            "Reads that the drive could not correct and had to report to the host.",
            "reported_uncorrect", "uncorrectable_error",
        ),
    ),
    188: (
        _fault(
            "Command timeouts",
            "Commands that took too long and were given up: the drive, its cable or its power.",
            "command_timeout",
        ),
    ),
    189: (_fault("High-fly writes", "Writes that were repeated because a head flew too high.", "high_fly"),),
    190: (_work("Air temperature", "The temperature inside the drive; the normalised value is 100 less the "
                "temperature on many drives.", "airflow", "temperature", unit="C"),),
    191: (_work("Shocks", "How often the shock sensor noticed a shock or vibration.", "g-sense"),),
    192: (
        _work("Emergency retracts", "How often the heads were parked because power was lost.", "power-off",
              "power_off", "unsafe", "emergency"),
    ),
    193: (_work("Load cycles", "How often the heads were parked and loaded again. Drives are built for some hundred "
                "thousand.", "load_cycle"),),
    194: (_work("Temperature", "The temperature inside the drive.", "temperature", unit="C"),),
    195: (
        _fault(
            "Corrected by ECC",
            "How often the error correction helped. The raw value has a maker's own form; the normalised one counts.",
            "hardware_ecc", "ecc",
            side=_NORM,
        ),
    ),
    196: (_fault("Reallocation events", "How often the drive tried to move a sector, also without success.",
                 "reallocated_event"),),
    197: (
        _fault(
            "Pending sectors",
            "Sectors that could not be read and wait to be written again or replaced. Their data is lost here, and "
            "only other copies have it.",
            "current_pending", "total_pending",
        ),
    ),
    198: (
        _fault(
            "Offline uncorrectable sectors",
            "Sectors that the drive's own scan could not read.",
            "offline_uncorrect", "total_offl",
        ),
    ),
    199: (
        _fault(
            "CRC errors of the link",
            "Frames that arrived broken between drive and host: mostly a cable, a connector or a backplane and not "
            "the disk.",
            "udma_crc", "crc_error", "ultradma",
        ),
    ),
    200: (_fault("Write error rate", "Errors when sectors were written.", "multi_zone", "write_error"),),
    202: (
        _work("Rated life left", "How much of its rated wear the flash has left.", "percent_lifetime", side=_NORM),
        _fault("Address mark errors", "Errors of the marks that begin a sector.", "data_address"),
    ),
    220: (_fault("Disk shift", "How far the platters have shifted on their spindle.", "disk_shift"),),
    222: (_work("Loaded hours", "Hours that the heads were loaded.", "loaded_hours", unit="hours"),),
    223: (_work("Load retries", "How often the heads did not load at the first attempt.", "load_retry"),),
    224: (_work("Load friction", "Resistance when the heads are loaded.", "load_friction"),),
    226: (_work("Load-in time", "How long the heads were loaded in all.", "load-in"),),
    231: (
        _work("Rated life left", "How much of its rated wear the flash has left.", "ssd_life", side=_NORM),
        _work("Temperature", "The temperature inside the drive.", "temperature", unit="C"),
    ),
    232: (_fault("Spare space left", "Spare blocks that are left, in percent.", "available_reserv", side=_NORM),),
    233: (_work("Rated life left", "How much of its rated wear the flash has left.", "media_wearout", side=_NORM),),
    235: (_work("Recoveries after power loss", "How often the drive had to recover after power was lost.", "por_"),),
    240: (_work("Head flying hours", "Hours that the heads were over the platters.", "head_flying", unit="hours"),),
    241: (_work("Written", "Data that the host has written, in units of the maker.", "total_lbas", "total_host",
                "host_writes", "lifetime_writes"),),
    242: (_work("Read", "Data that the host has read, in units of the maker.", "total_lbas", "total_host", "host_reads",
                "lifetime_reads"),),
}  # fmt: skip

UNKNOWN_MEANING: Final = SmartMeaning(
    "", "The maker's own; nothing public says what it counts.", _NORM, False, MeaningSource.NONE
)

VALUE_MEANINGS: Final[Mapping[str, SmartMeaning]] = {
    "temperature_c": SmartMeaning("Temperature", "The temperature inside the drive.", _HIGH, False, _TOOLS, unit="C"),
    "reallocated": SmartMeaning("Reallocated sectors", "Sectors that the drive replaced by spare ones.", _HIGH, True,
                                _ATA),
    "pending": SmartMeaning("Pending sectors", "Sectors that could not be read and wait to be written again or "
                            "replaced.", _HIGH, True, _SCSI),
    "offline_uncorrectable": SmartMeaning("Offline uncorrectable sectors", "Sectors that the drive's own scan could "
                                          "not read.", _HIGH, True, _ATA),
    "reported_uncorrectable": SmartMeaning("Reported uncorrectable errors", "Reads that the drive could not correct "
                                           "and had to report.", _HIGH, True, _ATA),
    "command_timeouts": SmartMeaning("Command timeouts", "Commands that took too long and were given up.", _HIGH, True,
                                     _ATA),
    "crc_errors": SmartMeaning("CRC errors of the link", "Frames that arrived broken between drive and host.", _HIGH,
                               True, _ATA),
    "end_to_end_errors": SmartMeaning("End-to-end errors", "Data that changed inside the drive.", _HIGH, True, _ATA),
    "media_errors": SmartMeaning("Media errors", "Data that the drive could not read back intact: uncorrectable, or "
                                 "with a wrong checksum.", _HIGH, True, _NVME),
    "grown_defects": SmartMeaning("Grown defects", "Sectors that became bad after the drive was made, and were "
                                  "replaced.", _HIGH, True, _SCSI),
    "non_medium_errors": SmartMeaning("Non-medium errors", "Errors of the link, the cache or the electronics and not "
                                      "of the surface.", _HIGH, True, _SCSI),
    "uncorrected_errors": SmartMeaning("Uncorrected errors", "Reads, writes and verifications that failed in spite of "
                                       "error correction.", _HIGH, True, _SCSI),
    "percentage_used": SmartMeaning("Rated life used", "How much of its rated wear the flash has used. Drives often "
                                    "outlive 100 %.", _HIGH, False, _NVME, unit="%"),
    "available_spare_pct": SmartMeaning("Available spare", "Spare blocks that are left.", _LOW, True, _NVME, unit="%"),
    "critical_warning": SmartMeaning("Critical warning", "Bits by which the drive itself warns: spare used up, too "
                                     "hot, unreliable, read-only, or its backup power failed.", _HIGH, True, _NVME),
    "unsafe_shutdowns": SmartMeaning("Unsafe shutdowns", "How often power was lost without a warning.", _HIGH, False,
                                     _NVME),
    "bytes_written": SmartMeaning("Written", "Data that the host has written.", _HIGH, False, _NVME, unit="bytes"),
    "bytes_read": SmartMeaning("Read", "Data that the host has read.", _HIGH, False, _NVME, unit="bytes"),
    "logged_errors": SmartMeaning("Logged errors", "Commands that ended in an error, over the drive's life. On NVMe "
                                  "invalid commands count, too.", _HIGH, True, _TOOLS),
    "failed_self_tests": SmartMeaning("Failed self-tests", "Self-tests that found the drive broken since the last "
                                      "long one that it passed.", _HIGH, True, _TOOLS),
    "link_errors": SmartMeaning("Link errors", "Frames or words that drive and host refused as broken: mostly a "
                                "cable, a connector or a backplane.", _HIGH, True, _ATA),
    "link_losses": SmartMeaning("Link losses", "How often the link was lost.", _HIGH, True, _ATA),
    "power_on_hours": SmartMeaning("Power-on hours", "Hours that the drive has been powered on.", _HIGH, False, _TOOLS,
                                   unit="hours"),
}  # fmt: skip
"""The values that a drive reports outside of a table of attributes, by their names in a reading."""


@lru_cache(maxsize=4096)
def find_attribute_meaning(id_: int, name: str) -> SmartMeaning:
    """Return the meaning of an ATA attribute that smartctl gives this name.

    A name of the form `smart_5`, which imported histories have, has the meaning that most drives give the id.
    """
    known = ATTRIBUTE_MEANINGS.get(id_, ())
    lower = name.lower()
    if known and lower == f"smart_{id_}":
        return known[0]
    return next((one for one in known if lower.startswith(one.names)), UNKNOWN_MEANING)
