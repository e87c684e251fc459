"""Power-on hours and temperature that a drive tells twice, where the two contradict each other, in text and in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.reading import Smart
from predrain.data.smart import decode_smartctl_output
from predrain.data.smart.ata import choose_power_on_hours, choose_temperature

_HEADER = """smartctl 7.3 2022-02-28 r5338 [x86_64-linux-5.10.0] (local build)
=== START OF INFORMATION SECTION ===
Device Model:     EXAMPLE SSD 240
Serial Number:    AB0123456789
Rotation Rate:    Solid State Device

=== START OF READ SMART DATA SECTION ===
ID# ATTRIBUTE_NAME          FLAGS    VALUE WORST THRESH FAIL RAW_VALUE
"""


def _text(
    attribute_9: str, statistic: int, sct: int | None, attribute_194: str | None, current: int
) -> Smart:
    rows = f"  9 Power_On_Hours          -O--CK   100   100   000    -    {attribute_9}\n"
    if attribute_194 is not None:
        rows += f"194 Temperature_Celsius     -O---K   100   100   000    -    {attribute_194}\n"
    status = "" if sct is None else f"Current Temperature:                    {sct} Celsius\n"
    pages = (
        "Device Statistics (GP Log 0x04)\nPage  Offset Size        Value Flags Description\n"
        f"0x01  0x010  4 {statistic:>15}  ---  Power-on Hours\n"
        f"0x05  0x008  1 {current:>15}  ---  Current Temperature\n"
    )
    return decode_smartctl_output((_HEADER + rows + status + pages).encode()).smart


def _json(
    attribute_9: str, statistic: int, sct: int | None, attribute_194: str | None, current: int
) -> Smart:
    """The object of smartctl 7.3, whose own `power_on_time` and `temperature` are those of the statistics."""

    def row(number: int, name: str, printed: str) -> dict[str, Any]:
        return {"id": number, "name": name, "raw": {"value": int(printed.split()[0]), "string": printed}}

    table = [row(9, "Power_On_Hours", attribute_9)]
    if attribute_194 is not None:
        table.append(row(194, "Temperature_Celsius", attribute_194))
    document: dict[str, Any] = {
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "device": {"protocol": "ATA"},
        "model_name": "EXAMPLE SSD 240",
        "serial_number": "AB0123456789",
        "rotation_rate": 0,
        "power_on_time": {"hours": statistic},
        "temperature": {"current": current},
        "ata_smart_attributes": {"table": table},
        "ata_device_statistics": {
            "pages": [
                {"number": 1, "table": [{"name": "Power-on Hours", "value": statistic}]},
                {"number": 5, "table": [{"name": "Current Temperature", "value": current}]},
            ]
        },
    }
    if sct is not None:
        document["ata_sct_status"] = {"temperature": {"current": sct}}
    return decode_smartctl_output(json.dumps(document).encode()).smart


Output = Callable[[str, int, int | None, str | None, int], Smart]
both = pytest.mark.parametrize("output", [_text, _json])


@both
@pytest.mark.parametrize(
    ("attribute_9", "statistic", "hours"),
    [
        ("20625", 0, 20625),  # never kept
        ("20625", 312, 20625),  # reset
        ("41000", 20600, 41000),  # reset half way
        ("1353", 1353, 1353),
        ("4208", 4209, 4209),
        ("900", 66436, 66436),  # an attribute of 16 bits that went round
        ("8113620", 135227, 135227),  # minutes, beyond any age
        ("81136", 1352, 1352),  # minutes
        ("162273", 1352, 1352),  # half minutes
        ("345700", 96, 96),  # seconds
        ("57", 0, 0),  # minutes or hours of a new drive
        ("22688 (104 66 0)", 0, 22688),
    ],
)
def test_the_count_of_hours_that_was_not_reset_is_believed(
    output: Output, attribute_9: str, statistic: int, hours: int
) -> None:
    assert output(attribute_9, statistic, None, "30", 30).power_on_hours == hours


@both
@pytest.mark.parametrize(
    ("sct", "attribute_194", "current", "celsius"),
    [
        (None, "34", -49, 34),  # below what any drive is specified for
        (None, "34 (Min/Max 20/51)", 20, 34),
        (35, "34", 25, 35),  # two sensors against a template
        (41, None, 25, 41),
        (None, None, 25, 25),
        (None, None, -49, None),
        (38, "100", 38, 38),  # the attribute is the one that is alone
        (None, None, -3, -3),
        (36, "36", 36, 36),
    ],
)
def test_a_temperature_that_nothing_confirms_gives_way_to_the_sensors(
    output: Output, sct: int | None, attribute_194: str | None, current: int, celsius: int | None
) -> None:
    assert output("100", 100, sct, attribute_194, current).temperature_c == celsius


_HOURS = st.none() | st.integers(0, 10**7)


@given(_HOURS, _HOURS, _HOURS)
def test_hours_are_one_of_those_told_and_never_beyond_forty_years(
    first: int | None, second: int | None, attribute: int | None
) -> None:
    chosen = choose_power_on_hours((first, second), attribute)
    assert chosen in (first, second, attribute, None)
    assert chosen is None or chosen <= 350_400


_CELSIUS = st.none() | st.integers(-40, 120)


@given(st.lists(_CELSIUS, max_size=3), _CELSIUS)
def test_a_sensor_is_never_passed_over_for_a_statistic_that_stands_alone(
    sensors: list[int | None], statistic: int | None
) -> None:
    chosen = choose_temperature(sensors, statistic)
    known = [value for value in sensors if value is not None]
    assert chosen in known if known else chosen == statistic
