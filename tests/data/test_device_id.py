"""Ids are Ceph's own: each row of the table names where that id was seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.device_id import device_id, names_one_drive

SEEN = [
    # vendor, model, serial as smartctl says them; the id as Ceph printed it; where
    (None, "Crucial_CT1024M550SSD1", "14210C25EB51", "Crucial_CT1024M550SSD1_14210C25EB51", "ceph device ls"),
    ("MINI", "HDD4T", "Z0000000", "MINI_HDD4T_Z0000000", "recorded cluster, device_ls"),
    ("Virtual", "Disk", "60022480a606d9dd478746063ae22b7e",
     "Virtual_Disk_60022480a606d9dd478746063ae22b7e", "osd metadata, reef"),
    (None, "WDC WDS200T2B0A-00SM50", "183503800168",
     "WDC_WDS200T2B0A-00SM50_183503800168", "Ceph's unit test"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("vendor", "model", "serial", "expected", "where"), SEEN, ids=[row[4] for row in SEEN]
)
def test_an_id_is_spelt_as_ceph_spells_it(
    vendor: str | None, model: str, serial: str, expected: str, where: str
) -> None:
    assert device_id(vendor, model, serial) == expected


@pytest.mark.parametrize(
    ("vendor", "model", "serial", "expected"),
    [
        (
            "SEAGATE",
            "SEAGATE ST1200MM0088",
            "Z4028VRY0000C810BZXB",
            "SEAGATE_ST1200MM0088_Z4028VRY0000C810BZXB",
        ),
        ("SEAGATE", "ST1200MM0088", "Z4028VRY0000C810BZXB", "SEAGATE_ST1200MM0088_Z4028VRY0000C810BZXB"),
        ("SAMSUNG", "SAMSUNG MZILT960HBHQ/007", "S5G1NC0W102239", "SAMSUNG_MZILT960HBHQ_007_S5G1NC0W102239"),
        ("HP 73.4G", "HP 73.4G MAS3735NC", "D207P5A01LXY", "HP_73.4G_MAS3735NC_D207P5A01LXY"),
        (None, "INTEL SSDPE2KX040T8   ", "  PHLJ9180  ", "INTEL_SSDPE2KX040T8_PHLJ9180"),
        (None, "Samsung SSD  860 PRO", "S42NNF0K", "Samsung_SSD_860_PRO_S42NNF0K"),
        ("ATA", "ST8000NM0055-1RM", "ZA11AAAA", "ST8000NM0055-1RM_ZA11AAAA"),
        ("NVMe", "INTEL SSDPE2KX04", "PHLJ9180", "INTEL_SSDPE2KX04_PHLJ9180"),
    ],
)
def test_blanks_vendors_and_unsafe_characters_follow_udev(
    vendor: str | None, model: str, serial: str, expected: str
) -> None:
    assert device_id(vendor, model, serial) == expected


@pytest.mark.parametrize(
    "serial",
    [None, "", "   ", "--", "(snip)", "REDACTED", "XXXXXXXXXXXX", "9RK1XXXX", "Z1Z5DWJK0000XXXXXXXX", "WD-WCC4E1 ...",
     "00000000", "Not Specified", "unknown", "n/a", "0123456789ABCDE", "123456789ABC"],
)  # fmt: skip
def test_a_missing_or_masked_serial_has_no_id(serial: str | None) -> None:
    assert device_id("SEAGATE", "ST1200MM0088", serial) is None


def test_a_drive_without_a_model_has_no_id() -> None:
    assert device_id(None, None, "14210C25EB51") is None
    assert device_id(None, "  ", "14210C25EB51") is None


@given(st.text(max_size=20), st.text(max_size=40), st.text(max_size=40))
def test_an_id_has_no_blanks_and_is_stable_under_padding(vendor: str, model: str, serial: str) -> None:
    name = device_id(vendor, model, serial)
    assert name == device_id(f"  {vendor}  ", f" {model}  ", f"  {serial} ")
    if name is not None:
        assert not any(character.isspace() for character in name)
        assert names_one_drive(serial)


def test_every_recorded_cluster_names_its_devices_this_way(shared_data: Path) -> None:
    checked = 0
    for path in sorted((shared_data / "recorded").glob("*/clean/device_ls.json")):
        for device in json.loads(path.read_text()):
            vendor, model, serial = device["devid"].split("_")
            assert device_id(vendor, f"{vendor} {model}", serial) == device["devid"]
            checked += 1
    assert checked >= 24
