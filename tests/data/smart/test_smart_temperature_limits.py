"""The temperature limits that drives of each protocol state of themselves, as JSON and as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from predrain.data.smart import SmartDocument, decode_smartctl_output

Sample = Callable[[str], SmartDocument]
Altered = Callable[..., SmartDocument]
SAMPLES = Path(__file__).parent / "samples"
THRESHOLDS = (
    "Warning  Comp. Temp. Threshold:     81 Celsius\nCritical Comp. Temp. Threshold:     87 Celsius\n"
)


def limits_of(document: SmartDocument) -> tuple[int | None, int | None]:
    return document.smart.temperature_limit_c, document.smart.temperature_critical_c


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("ata-030", (70, 70)),  # smartctl 7.3: under `temperature`, in the SCT status and in the history
        ("nvme-004", (84, 88)),
        ("scsi-003", (None, 65)),  # only a trip point
        ("nvme-025", (None, None)),
    ],
)
def test_each_protocol_states_its_limits_in_its_own_way(
    sample: Sample, name: str, limits: tuple[int | None, int | None]
) -> None:
    assert limits_of(sample(name)) == limits


def test_the_tables_of_the_drive_are_read_where_smartctl_does_not_repeat_them(altered: Altered) -> None:
    def forget(document: dict[str, Any]) -> None:
        document["temperature"] = {"current": 36}

    assert limits_of(altered("ata-030", forget)) == (70, 70)
    assert limits_of(altered("nvme-004", forget)) == (84, 88)


@pytest.mark.parametrize("nonsense", [0, 127, 255, -128, "hot", None, {}])
def test_a_nonsense_temperature_limit_is_read_as_no_limit(altered: Altered, nonsense: object) -> None:
    def fill(document: dict[str, Any]) -> None:
        document["temperature"]["drive_trip"] = nonsense

    assert limits_of(altered("scsi-003", fill)) == (None, None)


@pytest.mark.parametrize(
    ("name", "limits"), [("ata-026", (55, 60)), ("ata-016", (None, None)), ("scsi-010", (None, 72))]
)
def test_the_text_output_states_the_same_limits(name: str, limits: tuple[int | None, int | None]) -> None:
    assert limits_of(decode_smartctl_output((SAMPLES / f"{name}.txt").read_bytes())) == limits


def test_the_text_of_an_nvme_drive_states_both_thresholds() -> None:
    raw = (SAMPLES / "nvme-033.txt").read_text()
    place = raw.index("Local Time")
    assert limits_of(
        decode_smartctl_output(raw[:place].encode() + THRESHOLDS.encode() + raw[place:].encode())
    ) == (81, 87)
