"""A device's name as Ceph gives it, made from what smartctl says, so that a reading meets its OSD."""

from __future__ import annotations

import re

from predrain.data.ids import DeviceId
from predrain.data.outside_text import MODEL, SERIAL, clean_identifier

_TRANSLATED = frozenset({"ATA", "NVME"})
"""INQUIRY vendors that name a translation layer, not a maker; udev asks such a drive in its own protocol."""

_UNSAFE = re.compile(r"[^A-Za-z0-9#+\-.:=@_\u0080-\U0010ffff]")
_MASKED = re.compile(r"[X*]{4,}|\.\.\.|REDACTED", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"[-0.*?X\s]*|<.*>|\[.*\]|\(.*\)"
    r"|N/?A|NONE|NULL|UNKNOWN|DEFAULT|NOT[ _](SPECIFIED|AVAILABLE)|SERIAL([ _]?N(O|UM|UMBER))?",
    re.IGNORECASE,
)
_COUNTED = ("0123456789ABCDEF", "123456789ABCDEF")


def device_id(vendor: str | None, model: str | None, serial: str | None) -> DeviceId | None:
    """Ceph's id of a device, or None when its serial (or model) is missing, masked or a placeholder.

    `vendor` is the SCSI INQUIRY vendor and None for ATA and NVMe drives; `model` may begin with it, as
    smartctl's own "VENDOR PRODUCT" does. SCSI gives VENDOR_MODEL_SERIAL, ATA and NVMe MODEL_SERIAL. Runs of
    blanks become one underscore, blanks at the ends go, and characters that udev does not allow in a name
    become underscores. A model or serial number with characters that are cleaned away
    (`data.outside_text`) is told from all others by a digest of the whole.

    With the udev rules of sg3_utils, Ceph calls a SATA drive behind a SAS adapter by its 16-character INQUIRY product
    (`ATA_ST8000NM0055-1RM_SERIAL`), which only its host knows: collector.disks.kernel.

    Source: ceph src/common/blkdev.cc `get_device_id` (ID_VENDOR, ID_MODEL and ID_SCSI_SERIAL when all three
    are there, else ID_MODEL and ID_SERIAL_SHORT); systemd's `scsi_id` and `ata_id` for how udev fills these.
    """
    if model is None or serial is None or not model.strip() or not names_one_drive(serial):
        return None
    maker = clean_identifier(vendor or "", MODEL.limit)
    product, number = clean_identifier(model, MODEL.limit), clean_identifier(serial, SERIAL.limit)
    if not product or not names_one_drive(number):
        return None
    if maker.upper() in _TRANSLATED:
        maker = ""
    if not maker:
        return DeviceId(f"{_word(product)}_{_word(number)}")
    if product.startswith(f"{maker} "):
        product = product[len(maker) :]
    # ID_SCSI_SERIAL is the one field that udev hands on without replacing characters.
    return DeviceId(f"{_word(maker)}_{_word(product)}_{_joined(number)}")


def names_one_drive(serial: str) -> bool:
    """Whether a serial number tells one drive from all others: not blank, masked or a placeholder."""
    text = serial.strip()
    if _PLACEHOLDER.fullmatch(text) or _MASKED.search(text):
        return False
    return not (len(text) >= 8 and any(counted.startswith(text.upper()) for counted in _COUNTED))


def _joined(text: str) -> str:
    return "_".join(text.split())


def _word(text: str) -> str:
    return _UNSAFE.sub("_", _joined(text))
