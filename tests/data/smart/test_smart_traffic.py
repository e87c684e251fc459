"""Bytes written and read: units in names, names that lie, statistics that wrap; of the files named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from predrain.data.reading import Attribute
from predrain.data.smart import SmartDocument
from predrain.data.smart.host_traffic import bytes_read, bytes_written

MIB32, GIB, GB = 2**25, 2**30, 10**9


def _table(number: int, name: str, raw: int) -> dict[int, Attribute]:
    return {number: Attribute(name=name, raw=raw)}


@pytest.mark.parametrize(
    ("number", "name", "raw", "sector", "expected"),
    [
        (241, "Total_LBAs_Written", 18258569095, 512, 18258569095 * 512),
        (241, "Total_LBAs_Written", 18258569095, 4096, 18258569095 * 4096),
        (241, "Host_Writes_32MiB", 22567097, 512, 22567097 * MIB32),
        (225, "Host_Writes_32MiB", 15017138, 512, 15017138 * MIB32),
        (241, "Lifetime_Writes_GiB", 4252, 512, 4252 * GIB),
        (241, "Lifetime_Wts_Frm_Hst_GB", 1204, 512, 1204 * GB),
        (246, "Total_LBAs_Written", 17744378123, 512, 17744378123 * 512),
        (225, "Load_Cycle_Count", 104691, 512, None),
        (246, "Timed_Workld_RdWr_Ratio", 65535, 512, None),
        (241, "Unknown_Attribute", 3891539821, 512, None),
        (249, "NAND_Writes_1GiB", 17385, 512, None),
        (241, "Total_NAND_Writes_GiB", 17385, 512, None),
    ],
)
def test_the_name_tells_the_unit(number: int, name: str, raw: int, sector: int, expected: int | None) -> None:
    assert bytes_written(_table(number, name, raw), None, sector) == expected


def test_reads_are_not_writes() -> None:
    table = _table(242, "Host_Reads_32MiB", 19209582)
    assert bytes_read(table, None, 512) == 19209582 * MIB32
    assert bytes_written(table, None, 512) is None


@pytest.mark.parametrize(
    ("name", "raw", "sectors", "unit"),
    [
        ("Total_LBAs_Written", 254525, 16680561276, MIB32),  # text/ata-034
        ("Total_LBAs_Written", 10267611, 672898177588, MIB32),  # text/ata-068
        ("Total_LBAs_Written", 48291, 3164840301, MIB32),  # text/ata-095
        ("Total_LBAs_Written", 49658, 104140743216, GIB),  # text/ata-075
        ("Total_LBAs_Written", 129216, 252462825263, GB),  # text/ata-106
        ("Lifetime_Wts_Frm_Hst_GB", 1204, 2526099449, GIB),  # text/ata-072
    ],
)
def test_a_name_that_lies_is_found_out_by_the_statistics(
    name: str, raw: int, sectors: int, unit: int
) -> None:
    written = bytes_written(_table(241, name, raw), sectors, 512)
    assert written == sectors * 512
    assert written == pytest.approx(raw * unit, rel=0.01)


def test_an_honest_name_is_believed_beside_the_statistics() -> None:
    """text/ata-016: read at slightly different times."""
    assert (
        bytes_written(_table(241, "Total_LBAs_Written", 131851857111), 131784819726, 512)
        == 131851857111 * 512
    )


def test_statistics_that_wrapped_at_32_bits_still_tell_the_unit() -> None:
    """text/ata-030: 654556 units of 32 MiB, of which the statistics hold what is left above 2^32 sectors."""
    assert bytes_written(_table(241, "Total_LBAs_Written", 654556), 4242311720, 512) == 654556 * MIB32
    assert bytes_read(_table(242, "Total_LBAs_Read", 276004), 908372956, 512) == 276004 * MIB32


def test_an_honest_name_survives_statistics_that_wrapped() -> None:
    sectors = 5 * 2**32 + 123_456_789
    assert bytes_written(_table(241, "Total_LBAs_Written", sectors), 123_456_789, 512) == sectors * 512


def test_statistics_alone_are_enough() -> None:
    """ata-028 and text/ata-102 (`Unknown_Micron_Attrib`)."""
    assert bytes_written({}, 14999499540, 512) == 14999499540 * 512
    assert (
        bytes_written(_table(246, "Unknown_Micron_Attrib", 14828935147), 14828935147, 512)
        == 14828935147 * 512
    )


def test_a_drive_that_says_nothing_has_written_an_unknown_amount() -> None:
    assert bytes_written({}, None, 512) is None
    assert bytes_read({}, None, 512) is None


def test_more_than_a_disk_can_have_read_in_its_life_is_not_known() -> None:
    """text/ata-053: 6 TB, by its statistics 61 PB in four years, 450 MB/s on end; what it wrote is plausible."""
    assert bytes_read({}, 120138440480547, 512, disk_hours=37749) is None
    assert bytes_written({}, 342144282640, 512, disk_hours=37749) == 342144282640 * 512


def test_more_than_the_link_can_have_carried_is_not_known() -> None:
    """text/ata-069, which does not say that it turns: 34 PB in 1250 hours, 7.6 GB/s."""
    told = _table(242, "Total_LBAs_Read", 66916845706732)
    assert bytes_read(told, None, 512, ssd_hours=1250) is None
    assert bytes_read(told, None, 512) == 66916845706732 * 512, (
        "of an unknown age nothing is known to be too much"
    )


def test_whether_a_disk_turns_and_its_age_are_taken_from_the_same_output(
    altered: Callable[..., SmartDocument],
) -> None:
    """ata-026, a disk of 44,668 hours: 318 MB/s are more than its platters give, and its link would carry them."""

    def more(document: dict[str, Any]) -> None:
        (row,) = (row for row in document["ata_smart_attributes"]["table"] if row["id"] == 242)
        row["raw"] = {"value": 10**14, "string": str(10**14)}

    assert altered("ata-026", more).smart.counters.bytes_read is None
