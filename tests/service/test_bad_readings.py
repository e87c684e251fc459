"""A drive with odd readings gets an outlook or a refusal, and the drives beside it keep their outlooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from predrain.data.ids import DeviceId
from predrain.data.outlook import Status
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.service.app.application import Application
from predrain.service.config.state_directory import StateDir
from tests.service.conftest import NOON, Place, shut, smart_reading, week_of

ODD, FINE = "ODD", "FINE"


def seen(reading: Reading) -> Smart:
    assert isinstance(reading.seen, Smart)
    return reading.seen


def raw(reading: Reading, **counts: int) -> Reading:
    """With these raw values; the keys are smart_N."""
    table = dict(seen(reading).attributes)
    table |= {int(name.removeprefix("smart_")): Attribute(name, count) for name, count in counts.items()}
    return replace(reading, seen=replace(seen(reading), attributes=table))


def said(reading: Reading, **fields: Any) -> Reading:
    return replace(reading, seen=replace(seen(reading), **fields))


def silent(reading: Reading) -> Reading:
    return said(reading, attributes={}, counters=Counters(), power_on_hours=None, temperature_c=None)


def nvme(reading: Reading, **counts: int) -> Reading:
    identity = Identity(
        model="SAMSUNG MZ1L21T9", serial=ODD, capacity_bytes=600_332_565_813_390_450, rotation_rpm=0
    )
    counters = Counters(percentage_used=1, available_spare_pct=100, critical_warning=0, **counts)
    drive = Smart(Protocol.NVME, identity, True, counters, power_on_hours=5_000, spare_threshold_pct=10)
    return replace(reading, device=DeviceId(f"SAMSUNG_MZ1L21T9_{ODD}"), seen=drive)


def week(change: Callable[[Reading], Reading] = lambda reading: reading) -> list[Reading]:
    return [change(reading) for reading in week_of(ODD)]


def resized(reading: Reading) -> Reading:
    return said(reading, identity=replace(seen(reading).identity, capacity_bytes=600_332_565_813_390_450))


def other_model(reading: Reading) -> Reading:
    named = said(reading, identity=replace(seen(reading).identity, model="ST8000NM0055"))
    return replace(named, device=DeviceId(f"ST8000NM0055_{ODD}"))


@dataclass(frozen=True)
class Odd:
    """The readings of one drive, the statuses that follow from them, and the number of readings that are refused."""

    name: str
    readings: list[Reading]
    statuses: tuple[Status, ...]
    refused: int = 0


GOOD, UNKNOWN = (Status.GOOD,), (Status.UNKNOWN,)
CASES = [
    Odd("a gap of a month", [smart_reading(ODD, NOON - timedelta(days=40)), *week()[4:]], GOOD),
    Odd("a counter that goes back to zero", [raw(r, smart_5=8) for r in week()[:4]] + week()[4:], GOOD),
    Odd("readings from last to first", week()[::-1], GOOD),
    Odd("every reading twice", [*week(), *week()], GOOD),
    Odd("readings without a value", week(silent), UNKNOWN),
    Odd("one reading without a value after good ones", [*week()[:-1], silent(week()[-1])], GOOD),
    Odd("a capacity of 6e17", week(resized), GOOD),
    Odd("260,000 power-on hours", week(lambda r: said(r, power_on_hours=260_000)), GOOD),
    Odd("counts of all ones", week(lambda r: raw(r, smart_187=2**64 - 1)), GOOD),
    Odd("an NVMe drive with media errors of all ones", week(lambda r: nvme(r, media_errors=2**32 - 1)), GOOD),
    Odd("negative counts", week(lambda r: raw(r, smart_197=-1)), (), refused=8),
    Odd("another model half-way", week()[:4] + [other_model(r) for r in week()[4:]], (*GOOD, *GOOD)),
    Odd(
        "a reading from the future",
        [*week(), smart_reading(ODD, NOON + timedelta(days=3650), pending=999)], GOOD, refused=1,
    ),
    Odd("a clock that was never set", [*week(), smart_reading(ODD, NOON.replace(year=1970))], GOOD, refused=1),
    Odd("one reading only", week()[-1:], GOOD),
]  # fmt: skip


def outlooks(application: Application, readings: list[Reading]) -> tuple[int, dict[str, Any]]:
    refused = application.ingest(readings).refused
    while application.step_worker().taken:
        pass
    return len(refused), application.store.latest_outlooks()


@pytest.mark.parametrize("odd", CASES, ids=lambda odd: odd.name)
def test_an_odd_drive_is_judged_or_refused_and_the_one_beside_it_is_judged_as_ever(
    odd: Odd, place: Place, application: Application, tmp_path: Path
) -> None:
    mixed = [r for pair in zip(odd.readings, week_of(FINE), strict=False) for r in pair]
    rest = odd.readings[len(week_of(FINE)) :] + week_of(FINE)[len(odd.readings) :]
    refused, found = outlooks(application, [*mixed, *rest])
    alone = replace(place, state=StateDir(tmp_path / "alone").ensure_exists()).application()
    alone.start()
    _, expected = outlooks(alone, week_of(FINE))
    shut(alone)
    (fine,) = expected.items()
    assert found.pop(fine[0]) == fine[1]
    assert refused == odd.refused
    assert sorted(one.status for one in found.values()) == sorted(odd.statuses)
    unknown = [one for one in found.values() if one.status is Status.UNKNOWN]
    assert all(one.reasons[0].sentence for one in unknown)
