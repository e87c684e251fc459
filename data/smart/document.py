"""One output of smartctl, JSON or text, from bytes to `SmartDocument`; or one sentence why it tells nothing.

A disk that could not be read is refused with smartctl's own message, and the refusal keeps the exit bits: a
failed probe is evidence about the disk.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from predrain.data.device_id import device_id
from predrain.data.ids import DeviceId
from predrain.data.outside_text import MESSAGE, clean_text
from predrain.data.reading import Counters, Protocol, Smart
from predrain.data.refusal import Refusal
from predrain.data.smart import ata, nvme, scsi
from predrain.data.smart.exit_status import COMMAND_FAILED, VERDICT_FAILED, exit_bits, read_failed
from predrain.data.smart.json_text import LARGEST_DOCUMENT, NotJsonError, first_object, is_list
from predrain.data.smart.text import NotTextError, is_text, stops, transcript
from predrain.data.smart.values import JsonObject, count, integer, member, members, text
from predrain.data.unreadable import UnreadableCause

__all__ = ["LARGEST_DOCUMENT", "SmartDocument", "Undecodable", "decode"]


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
        """None when the output does not carry smartctl's exit status."""
        self.standby = standby
        """The drive was asleep and smartctl was told not to wake it: no evidence against the disk."""
        self.messages = messages
        self.cause = cause
        """Whose fault it is that nothing was read, where the output is taken for a failed probe."""

    @property
    def read_failed(self) -> bool:
        """Whether smartctl itself says that it read nothing."""
        return read_failed(self.exit_bits)


@dataclass(frozen=True, slots=True)
class SmartDocument:
    """What one run of smartctl told: of the disk (`smart`) and of the run itself."""

    smart: Smart
    device_id: DeviceId | None
    """None when the drive does not say who it is or its serial number is masked."""
    taken_at: datetime | None
    """The host's clock when smartctl ran (UTC), else the `now` that `decode` was given."""
    read_failed: bool
    """Exit bit 0 or 1, or bit 2 when the drive told nothing of the state that it keeps (a text says it in words):
    nothing more was read than what is here.
    """
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
    """The host's clock as it was printed, without its zone: where `taken_at` could not be told from a text."""

    @property
    def exit_bits(self) -> tuple[int, ...] | None:
        """Bits set in smartctl's exit status; None when the output does not carry it."""
        return self.smart.exit_bits

    @property
    def tells_state(self) -> bool:
        """Whether the drive told a verdict, its hours, a counter or an attribute."""
        return _tells_state(self.smart)

    @property
    def untold(self) -> str | None:
        """Why the drive told nothing of its state, and at most its name; None where it told some."""
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
    # An invalid opcode, field, namespace or log page (NVMe Base 2.0, 3.3.3.2) says that it keeps none.
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
"""By the signs of _CURES. A disk that smartctl could not open or identify for any other reason may be dying."""


def decode(document: bytes, now: datetime | None = None) -> SmartDocument:
    """Decode the output of one smartctl run, `--json` or text; which of them it is, its content tells.

    document: at most `LARGEST_DOCUMENT` bytes of UTF-8 (or UTF-16 with a byte order mark); stray text around
    the JSON object, a prompt or terminal colours are passed over.
    now: aware; stands in for the time of the reading where the output has none.
    Raises `Undecodable`, and nothing else, whatever the bytes are.
    """
    found, stopped = _found(document)
    program = member(found, "smartctl")
    bits = exit_bits(integer(program, "exit_status"))
    messages = _messages(found)
    standby = _asleep(found, messages)
    smart = _smart(found, bits)
    if smart is None or not _tells_something(smart):
        why, cause = _why_nothing(found, messages, bits)
        raise Undecodable(why, exit_bits=bits, standby=standby, messages=messages, cause=cause)
    device = member(found, "device")
    version = program.get("version")
    taken_at = _taken_at(found)
    told = _tells_state(smart)
    failed = None if told else _failure(found, messages, bits)
    silent = not told and (failed is not None or _is_silent(found, bits))
    return SmartDocument(
        smart=smart,
        device_id=_device_id(found, smart),
        taken_at=taken_at or now,
        read_failed=stopped or read_failed(bits) or silent,
        device_name=text(device, "name"),
        device_type=text(device, "type"),
        messages=messages if failed is None else tuple(dict.fromkeys((failed, *messages))),
        standby=standby,
        checksum_error=any("checksum" in said.lower() for said in messages),
        judged_by_attributes=any("Attribute check" in said for said in messages),
        smartctl_version=tuple(part for part in version if isinstance(part, int))
        if isinstance(version, list)
        else (),
        local_time=None if taken_at else _printed_time(found),
    )


def _found(document: bytes) -> tuple[JsonObject, bool]:
    """The object of one run, and whether a text says that smartctl was stopped before it had read the disk."""
    try:
        return _unwrapped(first_object(document)), False
    except NotJsonError as reason:
        why = str(reason)
    is_json = document.lstrip().startswith(b"{") or is_list(document)
    if len(document) > LARGEST_DOCUMENT or is_json or not is_text(document):
        raise Undecodable(why)
    try:
        return transcript(document)
    except NotTextError as reason:
        raise Undecodable(str(reason)) from None


def _unwrapped(found: JsonObject) -> JsonObject:
    """`ceph tell osd.N smart` and a health-metrics record of one scrape hold the document under one key."""
    inner = next(iter(found.values())) if len(found) == 1 else None
    if isinstance(inner, dict) and any(key in inner for key in ("smartctl", "device", "smartctl_error_code")):
        return inner
    scrapes = sum(isinstance(value, dict) and "smartctl" in value for value in found.values())
    if scrapes > 1:
        raise Undecodable(f"holds {scrapes} readings under as many keys, pass them one by one")
    return found


def _smart(found: JsonObject, bits: tuple[int, ...] | None) -> Smart | None:
    protocol = _protocol(found)
    if protocol is None:
        return None
    passed = _verdict(found, bits)
    match protocol:
        case Protocol.ATA:
            return ata.smart(found, passed, bits)
        case Protocol.SCSI:
            return scsi.smart(found, passed, bits)
        case Protocol.NVME:
            return nvme.smart(found, passed, bits)


def _protocol(found: JsonObject) -> Protocol | None:
    """What smartctl spoke; where it does not say, what the keys are made of."""
    device = member(found, "device")
    spoken = (text(device, "protocol") or "").lower()
    if spoken in ("ata", "scsi", "nvme"):
        return Protocol(spoken)
    if any(key.startswith("nvme_") for key in found):
        return Protocol.NVME
    if any(key.startswith(("ata_", "sata_")) or key in ("wwn", "in_smartctl_database") for key in found):
        return Protocol.ATA
    if any(key.startswith("scsi_") or key in ("product", "revision", "logical_unit_id") for key in found):
        return Protocol.SCSI
    kind = (text(device, "type") or "").lower()
    if kind.startswith(("nvme", "snt")):
        return Protocol.NVME
    if kind.startswith(("ata", "sat", "usb")):
        return Protocol.ATA
    return Protocol.SCSI if kind.startswith("scsi") else None


def _verdict(found: JsonObject, bits: tuple[int, ...] | None) -> bool | None:
    """The vendor's verdict; an output without it is no verdict, unless the exit status says FAILED."""
    passed = member(found, "smart_status").get("passed")
    if isinstance(passed, bool):
        return passed
    return False if bits is not None and VERDICT_FAILED in bits and not read_failed(bits) else None


def _tells_something(smart: Smart) -> bool:
    who = smart.identity
    return _tells_state(smart) or any(part is not None for part in (who.model, who.serial, who.wwn))


def _spoken_for(smart: Smart) -> bool:
    """Whether the SCSI layer answers for a SATA drive.

    smartctl falls back on it where a drive does not answer IDENTIFY DEVICE, and leaves INQUIRY's vendor and product out
    where the vendor is `ATA` (scsiprint.cpp, `scsiGetDriveInfo`). A verdict and a temperature are that layer's own.
    """
    who = smart.identity
    named = who.model is not None or (who.serial or who.wwn) is None
    return smart.protocol is Protocol.SCSI and not named and smart.counters == Counters()


def _tells_state(smart: Smart) -> bool:
    told = (smart.passed, smart.power_on_hours, *dataclasses.astuple(smart.counters))
    return bool(smart.attributes) or any(part is not None for part in told)


def _failure(found: JsonObject, messages: tuple[str, ...], bits: tuple[int, ...] | None) -> str | None:
    """How a drive that keeps a state failed to tell it, in smartctl's words: of a text, or those that
    `--json=o` brings along."""
    lines = (*messages, *_printed(found))
    if bits is not None and COMMAND_FAILED not in bits:
        return None
    # An ATA drive's IDENTIFY tells that it lacks SMART; of a SCSI drive smartctl says so when MODE SENSE failed.
    if _protocol(found) is not Protocol.SCSI and any(_NO_STATE.search(line) for line in lines):
        return None
    return next((clean_text(line, _LONGEST_MESSAGE) for line in lines if _STATE_FAILED.match(line)), None)


def _is_silent(found: JsonObject, bits: tuple[int, ...] | None) -> bool:
    """Whether a command failed at an ATA drive that has SMART switched on: plain `--json` does not say which."""
    enabled = member(found, "smart_support").get("enabled") is True
    return enabled and _protocol(found) is Protocol.ATA and bits is not None and COMMAND_FAILED in bits


def _device_id(found: JsonObject, smart: Smart) -> DeviceId | None:
    if smart.protocol is Protocol.SCSI:
        vendor, product = scsi.vendor_product(found)
        return device_id(vendor, product or smart.identity.model, smart.identity.serial)
    return device_id(None, smart.identity.model, smart.identity.serial)


def _taken_at(found: JsonObject) -> datetime | None:
    seconds = count(member(found, "local_time"), "time_t")
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (OverflowError, OSError, ValueError):
        return None


def _printed_time(found: JsonObject) -> datetime | None:
    """Only a transcript's `asctime` is an ISO time."""
    printed = text(member(found, "local_time"), "asctime") or ""
    try:
        return datetime.fromisoformat(printed) if "T" in printed[10:11] else None
    except ValueError:
        return None


def _asleep(found: JsonObject, messages: tuple[str, ...]) -> bool:
    mode = (text(member(found, "power_mode"), "name") or "").upper()
    return (
        "STANDBY" in mode
        or "SLEEP" in mode
        or any(" in STANDBY" in said or " in SLEEP" in said for said in messages)
    )


def _printed(found: JsonObject) -> list[str]:
    """The text that `--json=o` brings along."""
    lines = member(found, "smartctl").get("output")
    return [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []


def _messages(found: JsonObject) -> tuple[str, ...]:
    """smartctl's messages, errors first; of a SAS drive that stopped it only its text tells. Where Ceph's agent could
    not run it, what the agent says.
    """
    said = list(members(member(found, "smartctl"), "messages"))
    said.sort(key=lambda message: message.get("severity") != "error")
    told = [part for message in said if (part := text(message, "string", _LONGEST_MESSAGE))]
    scrape = [part for key in ("error", "smartctl_output") if (part := text(found, key, _LONGEST_MESSAGE))]
    told = told or [clean_text(line, _LONGEST_MESSAGE) for line in _printed(found) if stops(line)]
    return tuple(told) or ((": ".join(scrape),) if scrape else ())


def _why_nothing(
    found: JsonObject, messages: tuple[str, ...], bits: tuple[int, ...] | None
) -> tuple[str, UnreadableCause]:
    """One sentence, and the cause: smartctl's own words where it has some, and what to do."""
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
    if _asleep(found, messages):
        return "smartctl read nothing (the drive is asleep): ask again when it is awake"
    if read_failed(bits):
        return "smartctl read nothing and does not say why, run it again with -x --json as root"
    return "holds no verdict, counter or identity, run smartctl with -x"
