"""A device's id as Ceph forms it, built from smartctl's output, so that a reading can be matched to its OSD."""

from __future__ import annotations

import re

from predrain.data.ids import DeviceId
from predrain.data.outside_text import MODEL, SERIAL, clean_identifier

_TRANSLATED = frozenset({"ATA", "NVME"})
"""INQUIRY vendors that name a translation layer and not a maker; udev asks such a drive in its own protocol."""

_UNSAFE = re.compile(r"[^A-Za-z0-9#+\-.:=@_\u0080-\U0010ffff]")
_MASKED = re.compile(r"[X*]{4,}|\.\.\.|REDACTED", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"[-0.*?X\s]*|<.*>|\[.*\]|\(.*\)"
    r"|N/?A|NONE|NULL|UNKNOWN|DEFAULT|NOT[ _](SPECIFIED|AVAILABLE)|SERIAL([ _]?N(O|UM|UMBER))?",
    re.IGNORECASE,
)
_COUNTED = ("0123456789ABCDEF", "123456789ABCDEF")


def device_id(vendor: str | None, model: str | None, serial: str | None) -> DeviceId | None:
    """Return Ceph's id of a device, or None if its serial number or model is missing, masked or a placeholder.

    `vendor` is the SCSI INQUIRY vendor, and None for ATA and NVMe drives. `model` may begin with it, as smartctl's
    own "VENDOR PRODUCT" does. SCSI gives VENDOR_MODEL_SERIAL; ATA and NVMe give MODEL_SERIAL. Runs of blanks become
    one underscore, blanks at the ends are removed, and characters that udev does not allow in a name become
    underscores. If a model or serial number holds characters that are cleaned away (`data.outside_text`), a digest of
    the whole keeps it distinct from all others.

    With the udev rules of sg3_utils, Ceph names a SATA drive behind a SAS adapter by its 16-character INQUIRY product
    (`ATA_ST8000NM0055-1RM_SERIAL`), which only its host knows: collector.disks.kernel_disks.

    Source: ceph src/common/blkdev.cc `get_device_id` (ID_VENDOR, ID_MODEL and ID_SCSI_SERIAL when all three are
    there, else ID_MODEL and ID_SERIAL_SHORT); systemd's `scsi_id` and `ata_id` for how udev fills these.
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
        return DeviceId(f"{_replace_unsafe_characters(product)}_{_replace_unsafe_characters(number)}")
    if product.startswith(f"{maker} "):
        product = product[len(maker) :]
    # ID_SCSI_SERIAL is the one field that udev passes on without replacing characters.
    return DeviceId(
        f"{_replace_unsafe_characters(maker)}_{_replace_unsafe_characters(product)}_{_replace_blanks(number)}"
    )


def names_one_drive(serial: str) -> bool:
    """Return whether a serial number identifies one drive: it is not blank, masked or a placeholder."""
    text = serial.strip()
    if _PLACEHOLDER.fullmatch(text) or _MASKED.search(text):
        return False
    return not (len(text) >= 8 and any(counted.startswith(text.upper()) for counted in _COUNTED))


def _replace_blanks(text: str) -> str:
    return "_".join(text.split())


def _replace_unsafe_characters(text: str) -> str:
    return _UNSAFE.sub("_", _replace_blanks(text))
