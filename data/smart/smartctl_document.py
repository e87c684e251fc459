"""Decodes one output of smartctl, JSON or text, from bytes to `SmartDocument`, or to one sentence why it holds
nothing.

A disk that could not be read is refused with smartctl's own message, and the refusal keeps the exit bits: a failed
reading is evidence about the disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from predrain.data.device_id import device_id
from predrain.data.ids import DeviceId
from predrain.data.outside_text import MESSAGE, clean_text
from predrain.data.reading import Counters, Protocol, Smart
from predrain.data.refusal import Refusal
from predrain.data.self_test import SelfTestState
from predrain.data.smart import ata, nvme, scsi
from predrain.data.smart.exit_status import COMMAND_FAILED, VERDICT_FAILED, exit_bits, read_failed
from predrain.data.smart.json_text import LARGEST_DOCUMENT, NotJsonError, first_object, is_list
from predrain.data.smart.json_values import (
    JsonObject,
    iterate_json_objects,
    read_json_count,
    read_json_integer,
    read_json_object,
    read_json_text,
)
from predrain.data.smart.self_test_log import parse_self_tests
from predrain.data.smart.text import NotTextError, is_nothing_read_message, is_text, parse_text_output
from predrain.data.unreadable import UnreadableCause

__all__ = ["LARGEST_DOCUMENT", "SmartDocument", "Undecodable", "decode_smartctl_output"]


class Undecodable(Refusal):
    """The output holds no verdict, no counter and no identity. `str()` is one sentence with the cure."""

    def __init__(
        self,
        reason: str,
        *,
        exit_bits: tuple[int, ...] | None = None,
        standby: bool = False,
        messages: tuple[str, ...] = (),
        cause: UnreadableCause = UnreadableCause.NOT_UNDERSTOOD,
    ) -> None:
        super().__init__(reason)
        self.exit_bits = exit_bits
        """Exit bits; None if the output does not carry smartctl's exit status."""
        self.standby = standby
        """True if the drive was asleep and smartctl was not to wake it: no evidence against the disk."""
        self.messages = messages
        self.cause = cause
        """The cause to record if the output counts as a failed reading."""

    @property
    def read_failed(self) -> bool:
        """True if smartctl itself says that it read nothing."""
        return read_failed(self.exit_bits)


@dataclass(frozen=True, slots=True)
class SmartDocument:
    """The result of one run of smartctl: the disk's report (`smart`) and data about the run itself."""

    smart: Smart
    device_id: DeviceId | None
    """Ceph's id; None if the drive does not give its identity or its serial number is masked."""
    taken_at: datetime | None
    """The host's clock when smartctl ran (UTC), else the `now` that was passed to `decode_smartctl_output`."""
    read_failed: bool
    """True for exit bit 0 or 1, and for bit 2 if the drive keeps a state and reported none of it (a text says so in
    words). Nothing more was read than this document holds."""
    device_name: str | None = None
    device_type: str | None = None
    """`sat`, `megaraid,8`, `usbjmicron`. One block device can hide many drives: the key is the device id."""
    messages: tuple[str, ...] = ()
    standby: bool = False
    checksum_error: bool = False
    """A table came with a wrong checksum; its values are suspect."""
    judged_by_attributes: bool = False
    """The bridge or RAID controller lost the status registers: a weaker PASSED."""
    smartctl_version: tuple[int, ...] = field(default=())
    local_time: datetime | None = None
    """The host's clock as printed, without its zone, for a text from which `taken_at` could not be derived."""
    self_tests: SelfTestState | None = None
    """The drive's self-tests; None if the output holds nothing of them. A text names no kind of failure."""

    @property
    def exit_bits(self) -> tuple[int, ...] | None:
        """Bits set in smartctl's exit status; None if the output does not carry it."""
        return self.smart.exit_bits

    @property
    def tells_state(self) -> bool:
        """True if the drive reported a verdict, its hours, a counter or an attribute."""
        return _tells_state(self.smart)

    @property
    def missing_state_reason(self) -> str | None:
        """The reason why the drive reported no state, and at most its name; None if it reported some."""
        if not self.read_failed and _spoken_for(self.smart):
            return "it does not say who it is, and the SCSI layer before it knows nothing of its state"
        if not self.read_failed or _tells_state(self.smart):
            return None
        said = self.messages[0].rstrip(".") if self.messages else "it does not say why"
        return f"smartctl read nothing but the disk's name ({said[:_LONGEST_QUOTE]})"


_STATE_FAILED = re.compile(
    r"A mandatory SMART command failed\b|Read SMART Data failed\b"
    r"|(?:Log|Request) Sense failed, .*\[(?:device not ready|medium or hardware error|aborted command)"
    r"|Log Sense failed, IE page \[Input/output error"
    # An invalid opcode, field, namespace or log page (NVMe Base 2.0, 3.3.3.2) means that the drive keeps
    # none.
    r"|Read NVMe SMART/Health Information\b.* failed: (?!Invalid|NVMe Status 0x(?:4?0*)(?:1|2|b|109)\b)"
)
_NO_STATE = re.compile(r"lacks SMART capability|not support SMART|SMART Disabled")
_LONGEST_MESSAGE = MESSAGE.limit
_LONGEST_QUOTE = 300

_CURES: tuple[tuple[str, str], ...] = (
    ("please try adding '-d", "name the disk behind the controller with -d, as smartctl says"),
    ("INVALID ARGUMENT", "give smartctl arguments that it knows"),
    ("UNRECOGNIZED OPTION", "give smartctl options that it knows"),
    ("requires a device name", "name the device, smartctl -x --json /dev/sda"),
    ("in IDLE", "run smartctl without -n idle"),
    ("STANDBY", "the drive is asleep, ask again when it is awake"),
    ("SLEEP mode", "the drive is asleep, ask again when it is awake"),
    ("Permission denied", "run smartctl as root"),
    ("Operation not permitted", "run smartctl as root"),
    ("Unknown USB bridge", "name the bridge's type with -d"),
    ("Unknown device type", "name a type that this smartctl knows with -d"),
    ("Unable to detect device type", "name the device type with -d"),
    ("Probable ATA device", "name the device type with -d sat, and check the disk if that is not answered"),
    ("Standard Inquiry", "check the disk and its cable"),
    ("No such ", "check the device's name"),
)
_CAUSES: Mapping[str, UnreadableCause] = {
    **dict.fromkeys(("Permission denied", "Operation not permitted"), UnreadableCause.PERMISSION),
    **dict.fromkeys(
        ("INVALID ARGUMENT", "UNRECOGNIZED OPTION", "requires a device name", "Unknown device type"),
        UnreadableCause.TOOL_UNFIT,
    ),
    "No such ": UnreadableCause.DEVICE_GONE,
}
"""Causes by the signs of _CURES. A disk that smartctl could not open or identify for any other reason may be
failing."""


def decode_smartctl_output(document: bytes, now: datetime | None = None) -> SmartDocument:
    """Decode the output of one smartctl run, `--json` or text; its content decides which of the two it is.

    `document` is at most `LARGEST_DOCUMENT` bytes of UTF-8 (or UTF-16 with a byte order mark). Stray text around the
    JSON object, a prompt or terminal colours are passed over. `now` is aware, and is used if the output has no time.

    Raises `Undecodable`, and nothing else, for any bytes.
    """
    found, stopped = _parse_output_object(document)
    program = read_json_object(found, "smartctl")
    bits = exit_bits(read_json_integer(program, "exit_status"))
    messages = _collect_messages(found)
    standby = _is_disk_asleep(found, messages)
    smart = _parse_smart_data(found, bits)
    told = smart is not None and _tells_state(smart)
    if smart is None or not (told or _tells_identity(smart)):
        why, cause = _why_nothing(found, messages, bits)
        raise Undecodable(why, exit_bits=bits, standby=standby, messages=messages, cause=cause)
    device = read_json_object(found, "device")
    version = program.get("version")
    taken_at = _taken_at(found)
    failed = None if told else _find_state_failure(found, messages, bits)
    silent = not told and (failed is not None or _is_silent(found, bits))
    return SmartDocument(
        smart=smart,
        device_id=_device_id(found, smart),
        taken_at=taken_at or now,
        read_failed=stopped or read_failed(bits) or silent,
        device_name=read_json_text(device, "name"),
        device_type=read_json_text(device, "type"),
        messages=messages if failed is None else tuple(dict.fromkeys((failed, *messages))),
        standby=standby,
        checksum_error=any("checksum" in said.lower() for said in messages),
        judged_by_attributes=any("Attribute check" in said for said in messages),
        smartctl_version=tuple(part for part in version if isinstance(part, int))
        if isinstance(version, list)
        else (),
        local_time=None if taken_at else _printed_time(found),
        self_tests=parse_self_tests(found, smart.protocol),
    )


def _parse_output_object(document: bytes) -> tuple[JsonObject, bool]:
    """Return the object of one run, and whether a text says that smartctl stopped before it had read the disk."""
    try:
        return _unwrap_scrape(first_object(document)), False
    except NotJsonError as reason:
        why = str(reason)
    is_json = document.lstrip().startswith(b"{") or is_list(document)
    if len(document) > LARGEST_DOCUMENT or is_json or not is_text(document):
        raise Undecodable(why)
    try:
        return parse_text_output(document)
    except NotTextError as reason:
        raise Undecodable(str(reason)) from None


def _unwrap_scrape(found: JsonObject) -> JsonObject:
    """Return the document inside `ceph tell osd.N smart` or a health-metrics record, which hold it under one key.

    Raises Undecodable if there are several documents.
    """
    inner = next(iter(found.values())) if len(found) == 1 else None
    if isinstance(inner, dict) and any(key in inner for key in ("smartctl", "device", "smartctl_error_code")):
        return inner
    scrapes = sum(isinstance(value, dict) and "smartctl" in value for value in found.values())
    if scrapes > 1:
        raise Undecodable(f"holds {scrapes} readings under as many keys, pass them one by one")
    return found


def _parse_smart_data(found: JsonObject, bits: tuple[int, ...] | None) -> Smart | None:
    protocol = _detect_protocol(found)
    if protocol is None:
        return None
    passed = _read_health_verdict(found, bits)
    match protocol:
        case Protocol.ATA:
            return ata.parse_ata_smart(found, passed, bits)
        case Protocol.SCSI:
            return scsi.parse_scsi_smart(found, passed, bits)
        case Protocol.NVME:
            return nvme.parse_nvme_smart(found, passed, bits)


def _detect_protocol(found: JsonObject) -> Protocol | None:
    """Return the protocol that smartctl used; if it is not given, derive it from the keys."""
    device = read_json_object(found, "device")
    spoken = (read_json_text(device, "protocol") or "").lower()
    if spoken in ("ata", "scsi", "nvme"):
        return Protocol(spoken)
    if any(key.startswith("nvme_") for key in found):
        return Protocol.NVME
    if any(key.startswith(("ata_", "sata_")) or key in ("wwn", "in_smartctl_database") for key in found):
        return Protocol.ATA
    if any(key.startswith("scsi_") or key in ("product", "revision", "logical_unit_id") for key in found):
        return Protocol.SCSI
    kind = (read_json_text(device, "type") or "").lower()
    if kind.startswith(("nvme", "snt")):
        return Protocol.NVME
    if kind.startswith(("ata", "sat", "usb")):
        return Protocol.ATA
    return Protocol.SCSI if kind.startswith("scsi") else None


def _read_health_verdict(found: JsonObject, bits: tuple[int, ...] | None) -> bool | None:
    """Return the vendor's verdict. Without it there is no verdict, unless the exit status says FAILED."""
    passed = read_json_object(found, "smart_status").get("passed")
    if isinstance(passed, bool):
        return passed
    return False if bits is not None and VERDICT_FAILED in bits and not read_failed(bits) else None


def _tells_identity(smart: Smart) -> bool:
    who = smart.identity
    return any(part is not None for part in (who.model, who.serial, who.wwn))


def _spoken_for(smart: Smart) -> bool:
    """Return whether the SCSI layer answers for a SATA drive.

    smartctl falls back to the SCSI layer if a drive does not answer IDENTIFY DEVICE, and leaves INQUIRY's vendor and
    product out if the vendor is `ATA` (scsiprint.cpp, `scsiGetDriveInfo`). A verdict and a temperature are then that
    layer's own.
    """
    who = smart.identity
    named = who.model is not None or (who.serial or who.wwn) is None
    return smart.protocol is Protocol.SCSI and not named and smart.counters == _NO_COUNTER


_NO_COUNTER = Counters()


def _tells_state(smart: Smart) -> bool:
    told = smart.passed is not None or smart.power_on_hours is not None or bool(smart.attributes)
    return told or smart.counters != _NO_COUNTER


def _find_state_failure(
    found: JsonObject, messages: tuple[str, ...], bits: tuple[int, ...] | None
) -> str | None:
    """Return smartctl's line about the failure of a drive that keeps a state and could not report it, or None.

    The line comes from a text, or from the text in `--json=o`.
    """
    lines = (*messages, *_list_printed_lines(found))
    if bits is not None and COMMAND_FAILED not in bits:
        return None
    # An ATA drive's IDENTIFY says that the drive lacks SMART. For a SCSI drive smartctl says so if MODE SENSE
    # failed.
    if _detect_protocol(found) is not Protocol.SCSI and any(_NO_STATE.search(line) for line in lines):
        return None
    return next((clean_text(line, _LONGEST_MESSAGE) for line in lines if _STATE_FAILED.match(line)), None)


def _is_silent(found: JsonObject, bits: tuple[int, ...] | None) -> bool:
    """Return whether a command failed on an ATA drive with SMART enabled: plain `--json` does not say which command."""
    enabled = read_json_object(found, "smart_support").get("enabled") is True
    return enabled and _detect_protocol(found) is Protocol.ATA and bits is not None and COMMAND_FAILED in bits


def _device_id(found: JsonObject, smart: Smart) -> DeviceId | None:
    if smart.protocol is Protocol.SCSI:
        vendor, product = scsi.vendor_product(found)
        return device_id(vendor, product or smart.identity.model, smart.identity.serial)
    return device_id(None, smart.identity.model, smart.identity.serial)


def _taken_at(found: JsonObject) -> datetime | None:
    seconds = read_json_count(read_json_object(found, "local_time"), "time_t")
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (OverflowError, OSError, ValueError):
        return None


def _printed_time(found: JsonObject) -> datetime | None:
    """Return the printed time; only a transcript's `asctime` is an ISO time."""
    printed = read_json_text(read_json_object(found, "local_time"), "asctime") or ""
    try:
        return datetime.fromisoformat(printed) if "T" in printed[10:11] else None
    except ValueError:
        return None


def _is_disk_asleep(found: JsonObject, messages: tuple[str, ...]) -> bool:
    mode = (read_json_text(read_json_object(found, "power_mode"), "name") or "").upper()
    return (
        "STANDBY" in mode
        or "SLEEP" in mode
        or any(" in STANDBY" in said or " in SLEEP" in said for said in messages)
    )


def _list_printed_lines(found: JsonObject) -> list[str]:
    """Return the text that `--json=o` includes."""
    lines = read_json_object(found, "smartctl").get("output")
    return [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []


def _collect_messages(found: JsonObject) -> tuple[str, ...]:
    """Return smartctl's messages, errors first.

    If a failure stopped smartctl on a SAS drive, only its text has the message. If Ceph's agent could not run
    smartctl, it is the agent's message.
    """
    said = list(iterate_json_objects(read_json_object(found, "smartctl"), "messages"))
    said.sort(key=lambda message: message.get("severity") != "error")
    told = [part for message in said if (part := read_json_text(message, "string", _LONGEST_MESSAGE))]
    scrape = [
        part for key in ("error", "smartctl_output") if (part := read_json_text(found, key, _LONGEST_MESSAGE))
    ]
    told = told or [
        clean_text(line, _LONGEST_MESSAGE)
        for line in _list_printed_lines(found)
        if is_nothing_read_message(line)
    ]
    return tuple(told) or ((": ".join(scrape),) if scrape else ())


def _why_nothing(
    found: JsonObject, messages: tuple[str, ...], bits: tuple[int, ...] | None
) -> tuple[str, UnreadableCause]:
    """Return one sentence with smartctl's own words, if there are any, and the cure; and the cause."""
    if messages:
        first = messages[0].rstrip(".")[:_LONGEST_QUOTE]
        sign, cure = next(
            (known for known in _CURES if known[0] in first), ("", "check the disk and its cable")
        )
        cause = _CAUSES.get(sign, UnreadableCause.OPEN_FAILED)
        return f"smartctl read nothing ({first}): {cure}", cause
    if read_failed(bits) and isinstance(found.get("smartctl"), Mapping):
        return _without_words(found, messages, bits), UnreadableCause.OPEN_FAILED
    return _without_words(found, messages, bits), UnreadableCause.NOT_UNDERSTOOD


def _without_words(found: JsonObject, messages: tuple[str, ...], bits: tuple[int, ...] | None) -> str:
    if isinstance(found.get("devices"), list):
        return "is smartctl's list of devices, pass what smartctl -x --json prints of each"
    if "seagate_farm_log" in found:
        return "holds Seagate's FARM log only, run smartctl with -x --json"
    if "smartctl" not in found and not isinstance(found.get("device"), Mapping):
        return "is JSON but not of smartctl, pass what `smartctl -x --json` prints"
    if _is_disk_asleep(found, messages):
        return "smartctl read nothing (the drive is asleep): ask again when it is awake"
    if read_failed(bits):
        return "smartctl read nothing and does not say why, run it again with -x --json as root"
    return "holds no verdict, counter or identity, run smartctl with -x"
