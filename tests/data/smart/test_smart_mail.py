"""Outputs as mail and forums hand them on: quoted, wrapped, encoded, of several disks; excerpts of public mails."""

from __future__ import annotations

import quopri

import pytest

from predrain.data.smart import SmartDocument, Undecodable, decode_smartctl_output
from predrain.data.smart.text import split_smartctl_runs

# linux-raid, September 2019; linux-kernel, April 2005
QUOTED = """On Friday you wrote:
> # smartctl --all /dev/sdb
> smartctl 6.5 2016-05-07 r4318 [i686-linux-4.8.2-pmagic] (local build)
>
> Device Model: ST2000NM0033-9ZM175
> Serial Number: S1X05AW6
> LU WWN Device Id: 5 000c50 074a24a4d
> User Capacity: 2,000,398,934,016 bytes [2.00 TB]
> SMART overall-health self-assessment test result: PASSED
>   5 Reallocated_Sector_Ct 0x0033 100 100 010 Pre-fail Always - 0
>   9 Power_On_Hours 0x0032 053 053 000 Old_age Always - 41641
> 194 Temperature_Celsius 0x0022 042 050 000 Old_age Always - 42 (0 19 0 0
> 0)
> 197 Current_Pending_Sector 0x0012 100 100 000 Old_age Always - 8
"""
WRAPPED = """smartctl version 5.32 Copyright (C) 2002-4 Bruce Allen
Device Model:     Maxtor 6Y200P0
Serial Number:    Y60PVCZE
ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE     \x20
UPDATED  WHEN_FAILED RAW_VALUE
  5 Reallocated_Sector_Ct   0x0033   253   253   063    Pre-fail \x20
Always       -       1
  9 Power_On_Minutes        0x0032   220   220   000    Old_age  \x20
Always       -       849h+05m
194 Temperature_Celsius     0x0032   253   253   000    Old_age   Always       -\x20
12
197 Current_Pending_Sector  0x0008   253   253   000    Old_age  \x20
Offline      -       0
"""
SAS = """Vendor:               SEAGATE
Product:              ST4000NM0043
Error counter log:
read:   3716474487        0         0  3716474487          0     170154.272{}2
write:         0        0         0         0          0      35743.185           0
Non-medium error count:        3
"""
NVME = """> > >> > === START OF SMART DATA SECTION ===
> > >> > SMART overall-health self-assessment test result: PASSED
> > >> > Critical Warning:                   0x00
> > >> > Data Units Written:                 304,488 [155 GB]
> > >> > Power On Hours:                     5,582
"""


def read(text: str) -> SmartDocument:
    return decode_smartctl_output(text.encode())


@pytest.mark.parametrize("mark", ["> ", ">", "> > >> > ", " > "])
def test_a_quoted_output_reads_as_what_it_quotes(mark: str) -> None:
    plain = QUOTED.split("\n", 1)[1].replace("> ", "").replace(">", "")
    quoted = "".join(f"{mark}{line}\n" for line in plain.splitlines())
    drive = read(QUOTED)
    assert read(quoted).smart == read(plain).smart == drive.smart
    assert drive.device_id == "ST2000NM0033-9ZM175_S1X05AW6"
    assert (drive.smart.passed, drive.smart.power_on_hours, drive.smart.temperature_c) == (True, 41641, 42)
    assert (drive.smart.counters.reallocated, drive.smart.counters.pending) == (0, 8)


def test_a_row_that_was_wrapped_reads_as_one() -> None:
    smart = read(WRAPPED).smart
    assert set(smart.attributes) == {5, 9, 194, 197}
    assert (smart.counters.reallocated, smart.counters.pending) == (1, 0)
    assert (smart.power_on_hours, smart.temperature_c) == (849, 12)


def test_a_row_that_was_cut_takes_nothing_from_the_next() -> None:
    cut = WRAPPED.replace("Always       -       1\n", "").replace(
        "Pre-fail  \n", "Pre-fail  Always       -\n"
    )
    assert set(read(cut).smart.attributes) == {9, 194, 197}


def test_blanks_that_do_not_break_are_blanks() -> None:
    """As a mail program writes them (linux-usb, June 2024): `Device Model:=C2=A0=C2=A0 ST4000LM024-2AN17V`."""
    assert read(QUOTED.replace(" 0x", "\u00a0\u00a00x").replace(": ", ":\u00a0")).smart == read(QUOTED).smart


@pytest.mark.parametrize("gap", ["           ", " \n", "           \n> "])
def test_a_wrapped_line_of_the_error_counter_log_reads_as_one(gap: str) -> None:
    counters = read(SAS.format(gap)).smart.counters
    assert (counters.uncorrected_errors, counters.bytes_read) == (2, 170154272000000)


def test_an_output_in_quoted_printable_is_read() -> None:
    mailed = quopri.encodestring(NVME.encode())
    assert b"=3D=3D=3D START OF SMART DATA" in mailed
    smart = decode_smartctl_output(mailed).smart
    assert (smart.passed, smart.power_on_hours, smart.counters.critical_warning) == (True, 5582, 0)


def test_an_output_without_headings_in_quoted_printable_is_read() -> None:
    mailed = SAS.format("           ").replace("ST4000NM0043\n", "ST4000NM0043=20=20\n=20\n")
    assert read(mailed).smart == read(SAS.format("           ")).smart


def test_quoted_outputs_of_two_disks_are_refused_and_can_be_parted() -> None:
    other = QUOTED.replace("S1X05AW6", "S1X05AW7").split("\n", 1)[1]
    with pytest.raises(Undecodable, match="several runs"):
        read(QUOTED + other)
    assert [
        decode_smartctl_output(run).smart.identity.serial
        for run in split_smartctl_runs((QUOTED + other).encode())
    ] == [
        "S1X05AW6",
        "S1X05AW7",
    ]


def test_outputs_without_a_header_are_parted_at_their_information_sections() -> None:
    """linux-raid, March 2021: a script that prints 18 disks and drops the header of each."""
    disks = ["Z1Z8YWB0", "PCHP96XB", "Z1Z8YWJN"]
    text = "".join(
        f"/dev/sdb\n=== START OF INFORMATION SECTION ===\nDevice Model:     MB4000GCWDC\nSerial Number:    {disk}\n\n"
        "=== START OF READ SMART DATA SECTION ===\nSMART overall-health self-assessment test result: PASSED\n\n"
        for disk in disks
    )
    with pytest.raises(Undecodable, match="several runs"):
        read(text)
    assert [
        decode_smartctl_output(run).smart.identity.serial for run in split_smartctl_runs(text.encode())
    ] == disks


# Ubuntu forums, October 2020 and January 2019
HEADER = "smartctl {} [x86_64-linux-4.9.0-13-amd64] (local build)\n"
HEALTH = HEADER.format("6.6 2016-05-31 r4324") + "SMART Health Status: {}\n"
LOG = HEADER.format("7.0 2018-12-30 r4883") + (
    "SMART/Health Information (NVMe Log 0x02)\nCritical Warning:                   0x00\n"
    "Data Units Written:                 {} [158 TB]\n"
)
TABLE = HEADER.format("7.2 2020-12-30 r5155") + (
    "ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE\n"
    "  1 Raw_Read_Error_Rate     0x002f   200   200   051    Pre-fail  Always       -       {}\n"
    "197 Current_Pending_Sector  0x0032   200   200   000    Old_age   Always       -       {}\n"
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (HEALTH.format("OK"), HEALTH.format("FAILURE PREDICTION THRESHOLD EXCEEDED [asc=5d, ascq=0]")),
        (LOG.format("309,008,384"), LOG.format("309,008,388")),
        (TABLE.format(25, 0), TABLE.format(0, 8)),
        (TABLE.format(25, 0), HEADER.format("6.2") + "Smartctl open device: /dev/sdb failed: No such device\n"),
    ],
)  # fmt: skip
def test_outputs_of_two_disks_that_tell_no_name_are_not_mixed(one: str, other: str) -> None:
    assert read(one)
    with pytest.raises(Undecodable, match="several runs"):
        read(one + "\n" + other)


def test_a_counter_that_moves_between_two_commands_does_not_make_two_disks_of_one() -> None:
    assert read(TABLE.format(25, 8) + TABLE.format(26, 8)).smart.counters.pending == 8
