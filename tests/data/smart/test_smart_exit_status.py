"""Bits 0-1 say that nothing was read; bits 2-7 are signals about the disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from predrain.data.smart import SmartDocument, Undecodable, decode_smartctl_output
from predrain.data.smart.exit_status import exit_bits, read_failed

Sample = Callable[[str], SmartDocument]
Altered = Callable[..., SmartDocument]


@pytest.mark.parametrize(
    ("status", "bits"),
    [
        (0, ()),
        (4, (2,)),
        (64, (6,)),
        (216, (3, 4, 6, 7)),
        (255, tuple(range(8))),
        (256, None),
        (-1, None),
        (None, None),
    ],
)
def test_an_exit_status_is_its_bits(status: int | None, bits: tuple[int, ...] | None) -> None:
    assert exit_bits(status) == bits


@pytest.mark.parametrize("bit", range(8))
def test_only_bits_0_and_1_mean_that_the_read_failed(bit: int) -> None:
    assert read_failed((bit,)) == (bit < 2)


def test_216_is_a_failed_verdict_with_good_data(sample: Sample) -> None:
    """ata-052: 8 + 16 + 64 + 128."""
    document = sample("ata-052")
    assert document.exit_bits == (3, 4, 6, 7)
    assert not document.read_failed
    assert document.smart.passed is False
    assert (document.smart.counters.reallocated, document.smart.counters.pending) == (1975, 8)


def test_64_is_an_error_log_and_no_failed_read(sample: Sample) -> None:
    """ata-046."""
    document = sample("ata-046")
    assert document.exit_bits == (6,)
    assert not document.read_failed
    assert document.smart.passed is True


def test_an_output_without_a_smartctl_object_has_no_exit_bits(sample: Sample) -> None:
    """scsi-002."""
    document = sample("scsi-002")
    assert document.exit_bits is None
    assert not document.read_failed
    assert document.smart.counters.grown_defects == 56


def test_an_attribute_check_is_a_weaker_verdict(sample: Sample) -> None:
    """ata-017 and ata-055, behind a RAID controller that loses the status registers."""
    for name in ("ata-017", "ata-055"):
        document = sample(name)
        assert document.judged_by_attributes
        assert document.exit_bits == (2,)
        assert document.smart.passed is True
    assert not sample("ata-001").judged_by_attributes


def test_an_identity_that_was_read_before_the_open_failed_is_kept(altered: Altered) -> None:
    def failed(document: dict[str, Any]) -> None:
        document["smartctl"]["exit_status"] = 2
        for key in [
            key for key in document if key.startswith(("ata_smart", "smart_status", "power_", "temp"))
        ]:
            del document[key]

    document = altered("ata-055", failed)
    assert document.read_failed
    assert document.smart.identity.serial == "ZAD2C11G"
    assert document.smart.passed is None
    assert document.smart.attributes == {}


def test_a_failed_verdict_is_read_from_bit_3_when_the_verdict_itself_is_missing(altered: Altered) -> None:
    def without_verdict(document: dict[str, Any]) -> None:
        del document["smart_status"]

    assert altered("ata-052", without_verdict).smart.passed is False
    assert altered("ata-046", without_verdict).smart.passed is None


def test_bit_3_of_a_failed_read_is_no_verdict(altered: Altered) -> None:
    def failed(document: dict[str, Any]) -> None:
        del document["smart_status"]
        document["smartctl"]["exit_status"] = 2 + 8

    assert altered("ata-052", failed).smart.passed is None


def test_a_sleeping_disk_is_refused_as_asleep_and_not_as_broken() -> None:
    """The message of text/broken-005.txt, as `smartctl -n standby --json` of 7.x carries it."""
    asleep = b"""{"smartctl": {"version": [7, 3], "exit_status": 2, "messages": [
        {"string": "Device is in STANDBY mode, exit(2)", "severity": "information"}]},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"}}"""
    with pytest.raises(Undecodable, match=r"STANDBY mode.*asleep") as refused:
        decode_smartctl_output(asleep)
    assert refused.value.standby
    assert refused.value.read_failed


def test_the_power_mode_of_7_5_tells_a_sleeping_disk_too() -> None:
    asleep = b"""{"smartctl": {"version": [7, 5], "exit_status": 3}, "power_mode": {"ata_value": 0, "name":
        "STANDBY"}, "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"}}"""
    with pytest.raises(Undecodable, match="asleep") as refused:
        decode_smartctl_output(asleep)
    assert refused.value.standby


def test_a_disk_that_cannot_be_opened_is_refused_with_smartctls_own_words(samples: dict[str, bytes]) -> None:
    """broken-004."""
    with pytest.raises(Undecodable, match=r"PhysicalDrive0: Open failed, Error=5") as refused:
        decode_smartctl_output(samples["broken-004"])
    assert refused.value.exit_bits == (1,)
    assert refused.value.read_failed
    assert not refused.value.standby


@pytest.mark.parametrize(
    ("status", "message", "cure"),
    [
        (2, "Smartctl open device: /dev/sdb [SAT] failed: Permission denied", "as root"),
        (1, "/dev/sde: Unknown USB bridge [0x048d:0x1234 (0x200)]", "with -d"),
        (1, "/dev/sda: Unknown device type 'cciss,0'", "with -d"),
    ],
)
def test_a_refused_probe_names_its_cure(status: int, message: str, cure: str) -> None:
    """The messages of broken-007, broken-001 and broken-009."""
    program = {"exit_status": status, "messages": [{"string": message, "severity": "error"}]}
    with pytest.raises(Undecodable) as refused:
        decode_smartctl_output(json.dumps({"smartctl": program}).encode())
    assert message in str(refused.value)
    assert cure in str(refused.value)


def test_a_wrong_checksum_marks_the_tables_as_suspect(altered: Altered, sample: Sample) -> None:
    """The warning of text/ata-027.txt, in the form that --json gives messages."""
    warning = "Warning! SMART Attribute Data Structure error: invalid SMART checksum."

    def warned(document: dict[str, Any]) -> None:
        document["smartctl"]["messages"] = [{"string": warning, "severity": "warning"}]

    assert altered("ata-001", warned).checksum_error
    assert not sample("ata-001").checksum_error
